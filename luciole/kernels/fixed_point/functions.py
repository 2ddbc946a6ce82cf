"""Functions of fixed-point numbers, bit for bit those of gemmlowp and TFLite.

A number with i integer bits is an int32 in units of 2^(i - 31); products have the integer bits of
both factors. Arrays are int64 where sums may need it, and hold int32.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array
from luciole.ir.analysis.fixed_point import BITS, high_multiply, rounding_divide

Numbers = NDArray[np.int64]

ONE = 2**31 - 1
"""1 without integer bits: the next number below."""

HALVINGS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
"""e^-(2^k) for k from -2 to 4, without integer bits."""

EXP_BITS = 26
"""Fraction bits of the numbers whose exponential is taken."""


def saturated(steps: Array, zero_point: int, like: Array) -> Array:
    """Add a zero point to numbers of steps and saturate them as integers of an array's type."""
    limits = np.iinfo(like.dtype)
    wide = steps.astype(np.int64) + zero_point
    return np.asarray(np.clip(wide, limits.min, limits.max), like.dtype)


def times(x: Array | int, y: Array | int) -> Numbers:
    """Multiply two fixed-point numbers: SaturatingRoundingDoublingHighMul."""
    return high_multiply(x, y).astype(np.int64)


def raised(x: Array, bits: int) -> Numbers:
    """Compute x 2^bits, saturated; a negative number of bits rounds half away from zero."""
    if bits < 0:
        return rounding_divide(x, -bits).astype(np.int64)
    return np.asarray(np.clip(np.asarray(x, np.int64) << bits, -(2**BITS), ONE))


def leading_zeros(x: Array) -> Numbers:
    """Count the zeros in front of the highest bit of numbers from 0 to 2^32 - 1, as int32 has
    them.
    """
    return 32 - np.frexp(np.asarray(x, np.float64))[1].astype(np.int64)


def _exp_near_zero(x: Array) -> Numbers:
    """Compute e^x of -1/4 <= x < 0 without integer bits: a Taylor polynomial around -1/8."""
    constant, third = 1895147668, 715827883
    x = x + (1 << 28)
    square = times(x, x)
    cube, fourth = times(square, x), times(square, square)
    terms = raised(times(raised(fourth, -2) + cube, third) + square, -1)
    return constant + times(constant, x + terms)


def exp(x: Array) -> Numbers:
    """Compute e^x of x <= 0 with 5 integer bits; the result has none."""
    x = np.asarray(x, np.int64)
    quarter = 1 << (EXP_BITS - 2)
    near = (x & (quarter - 1)) - quarter
    result, rest = _exp_near_zero(raised(near, 5)), near - x
    for bit, factor in enumerate(HALVINGS, EXP_BITS - 2):
        result = np.where(rest & (1 << bit), times(result, factor), result)
    return np.where(x == 0, ONE, result)


def one_over_one_plus(x: Array) -> Numbers:
    """Compute 1 / (1 + x) of 0 <= x < 1, without integer bits: three steps of Newton's method."""
    half = (np.asarray(x, np.int64) + ONE + 1) >> 1
    inverse = 1515870810 + times(half, -1010580540)
    for _ in range(3):
        inverse = inverse + raised(times(inverse, (1 << 29) - times(half, inverse)), 2)
    return raised(inverse, 1)


def reciprocal(x: Array, integer_bits: int) -> tuple[Numbers, Numbers]:
    """Compute 1 / x of x > 0 without integer bits, and how many bits x has above 1:
    GetReciprocal.
    """
    zeros = leading_zeros(x)
    fraction = (np.asarray(x, np.int64) << zeros) - (1 << BITS)
    return one_over_one_plus(fraction), integer_bits - zeros


def log(x: Array) -> Numbers:
    """Compute the logarithm, with 5 integer bits, of x >= 1 with 12 integer bits.

    TFLite's log_x_for_x_greater_than_or_equal_to_1.
    """
    accumulated, root, fourth_root = 6, 1518500250, 1805811301
    zeros = leading_zeros(x)
    low = _scaled(times(_scaled(x, zeros - 1), root), 1)
    quarter = raised(np.asarray(1 << 29), -accumulated)
    low_power = raised(12 - zeros, BITS - accumulated) + quarter
    headroom = leading_zeros(times(x, root)) - 1
    high = _scaled(x, headroom)
    high_power = raised(12 - headroom, BITS - accumulated) - quarter
    r, power = np.minimum(low, high), np.maximum(low_power, high_power)
    p = _half_sum(r, fourth_root)
    q = 2 * (r - fourth_root)
    square = times(q, q)
    numerator = times(q, r) + times(times(q, square), 117049297)
    denominator = times(p, 1057819769 + q + times(127690142, square)) + times(638450708, q)
    fraction = times(raised(numerator, -accumulated), one_over_one_plus(denominator))
    return raised(times(power, 1488522236) + fraction, accumulated - 5)


def _scaled(x: Array, bits: Array | int) -> Numbers:
    """Compute x 2^bits, saturated from a little below the limits on."""
    x, bits = np.asarray(x, np.int64), np.asarray(bits, np.int64)
    threshold = (np.int64(1) << (BITS - bits)) - 1
    kept = np.where(x > threshold, ONE, np.where(x < -threshold, -(2**BITS), x << bits))
    return np.where(bits == 0, x, kept)


def _half_sum(x: Array, y: int) -> Numbers:
    """Compute (x + y) / 2, halves away from zero."""
    total = np.asarray(x, np.int64) + y
    return np.where(total >= 0, total + 1, total) >> 1


def inverse_root(x: Array) -> tuple[Numbers, Numbers]:
    """Compute 1 / sqrt(x) of x from 1 to 2^31 - 1 as multiplier / 2^31 2^shift.

    TFLite's GetInvSqrtQuantizedMultiplierExp: five steps of Newton's method from 1.
    """
    large = np.asarray(x) >= 1 << 29
    x = np.where(large, np.asarray(x, np.int64) // 4, x)
    pairs = (leading_zeros(np.maximum(x, 2)) - 1) // 2 - 1
    down = 11 + large - pairs
    scaled = (np.maximum(x, 2) << (2 * pairs)) >> 1
    half, root = raised(scaled, -1), np.full(x.shape, 1 << 28, np.int64)
    for _ in range(5):
        cube = raised(times(times(root, root), root), 6)
        root = raised(times((1 << 28) + (1 << 27), root) - times(half, cube), 3)
    root = times(root, 1518500250)
    root, down = root << np.maximum(-down, 0), np.maximum(down, 0)
    return np.where(x <= 1, ONE, root), np.where(x <= 1, 0, -down)
