"""Functions of fixed-point numbers with 16 bits, bit for bit those of gemmlowp.

A number with i integer bits is an int16 in units of 2^(i - 15); products have the integer bits of
both factors. Arrays are int64 and hold int16.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array
from luciole.ir.analysis.fixed_point import rounding_divide
from luciole.kernels.core.allocation import placed

Numbers = NDArray[np.int64]

BITS = 15
ONE = 2**BITS - 1
"""1 without integer bits: the next number below."""

HALVINGS = (25520, 19875, 12055, 4435, 600, 11, 0)
"""e^-(2^k) for k from -2 to 4, without integer bits."""


def saturated(x: Array) -> Numbers:
    """Cut numbers off at the limits of 16 bits."""
    return np.asarray(np.clip(x, -(2**BITS), ONE), np.int64)


def wrapped(x: Array) -> Numbers:
    """Keep the lowest 16 bits of a number, with their sign."""
    return np.asarray(x).astype(np.int16).astype(np.int64)


def times(x: Array, y: Array | int) -> Numbers:
    """Multiply two fixed-point numbers: SaturatingRoundingDoublingHighMul of int16."""
    product = np.asarray(x, np.int64) * np.asarray(y, np.int64)
    return np.asarray(np.minimum((product + (1 << (BITS - 1))) >> BITS, ONE), np.int64)


def raised(x: Array, bits: int) -> Numbers:
    """Compute x 2^bits, saturated; a negative number of bits rounds half away from zero."""
    if bits < 0:
        return rounding_divide(x, -bits).astype(np.int64)
    return saturated(np.asarray(x, np.int64) << bits)


def _exp_near_zero(x: Array) -> Numbers:
    """Compute e^x of -1/4 <= x < 0 without integer bits: a Taylor polynomial around -1/8."""
    constant, third = 28918, 10923
    x = wrapped(x + (1 << (BITS - 3)))
    square = times(x, x)
    cube, fourth = times(square, x), times(square, square)
    terms = raised(wrapped(times(wrapped(raised(fourth, -2) + cube), third) + square), -1)
    return saturated(constant + times(wrapped(x + terms), constant))


def exp(x: Array, integer_bits: int) -> Numbers:
    """Compute e^x of x <= 0; the result has no integer bits."""
    x, fraction = np.asarray(x, np.int64), BITS - integer_bits
    quarter = 1 << (fraction - 2)
    near = (x & (quarter - 1)) - quarter
    result, rest = _exp_near_zero(raised(near, integer_bits)), wrapped(near - x)
    for power, factor in enumerate(HALVINGS, -2):
        if integer_bits > power:
            result = np.where(rest & (1 << (fraction + power)), times(result, factor), result)
    if integer_bits > 5:
        result = np.where(x < -(1 << (fraction + 5)), 0, result)
    return np.where(x == 0, ONE, result)


def _over_one_plus(x: Array) -> Numbers:
    """Compute 2 / (1 + x) of 0 <= x < 1 with 2 integer bits: three steps of Newton's method."""
    half = (np.asarray(x, np.int64) + ONE + 1) >> 1
    quotient = wrapped(23130 + times(half, -15420))
    for _ in range(3):
        rest = wrapped((1 << (BITS - 2)) - times(half, quotient))
        quotient = wrapped(quotient + raised(times(quotient, rest), 2))
    return quotient


def logistic(x: Array) -> Numbers:
    """Compute 1 / (1 + e^-x) of x with 3 integer bits, without integer bits."""
    x = np.asarray(x, np.int64)
    of_magnitude = raised(_over_one_plus(exp(wrapped(-np.abs(x)), 3)), 1)
    return np.where(x == 0, 1 << (BITS - 1), np.where(x > 0, of_magnitude, ONE - of_magnitude))


def tanh(x: Array, integer_bits: int) -> Numbers:
    """Compute tanh(x) of x with as many integer bits, without integer bits."""
    x = np.asarray(x, np.int64)
    over = _over_one_plus(exp(wrapped(-np.abs(x)), integer_bits + 1))
    of_magnitude = raised(wrapped(over - (1 << (BITS - 2))), 2)
    return np.where(x == 0, 0, np.where(x > 0, of_magnitude, wrapped(-of_magnitude)))


@cache
def table(function: Callable[..., Numbers], *integer_bits: int) -> Array:
    """Tabulate a function of every number of 16 bits, from the lowest on: int16 [65536], in memory
    that kernels may touch.
    """
    every = np.arange(-(2**BITS), 2**BITS)
    return placed(function(every, *integer_bits).astype(np.int16))
