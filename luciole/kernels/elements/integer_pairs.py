"""Compiled kernels of functions of two quantized integers of 8 or 16 bits, stretched to one shape,
that are computed by fixed-point factors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cache

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.dtypes import tensor_type
from luciole.kernels import jit
from luciole.kernels.core.contract import NativeStep
from luciole.kernels.core.memory import Memory
from luciole.kernels.elements import strided
from luciole.kernels.elements.conversions import KINDS
from luciole.kernels.fixed_point.compiled import (
    Factor,
    FactorRecord,
    Given,
    Whole,
    by_factor,
    factor_at,
)
from luciole.kernels.jit.vector.conversions import Kind, integers_at


class Function(IntEnum):
    """A function of steps p and q from the zero points; F, G and H are its factors."""

    SUM = 0
    """H(F p + G q)"""
    DIFFERENCE = 1
    """H(F p - G q)"""
    SQUARED_DIFFERENCE = 2
    """H((F p - G q)^2)"""
    PRODUCT = 3
    """H(p q)"""
    BENT = 4
    """F p where p is not negative, else G(p q)"""
    LESS = 5
    """F p < G q; as those below without a zero point and limits."""
    LESS_EQUAL = 6
    EQUAL = 7
    NOT_EQUAL = 8


SUM, DIFFERENCE, SQUARED_DIFFERENCE, PRODUCT, BENT, LESS, LESS_EQUAL, EQUAL, NOT_EQUAL = (
    int(function) for function in Function
)

FACTORS = 3
"""F, G and H."""


@dataclass(frozen=True)
class Pairs:
    """A function, the zero points of both operands, by how many bits their steps are shifted up,
    the factors, and the result's zero point and limits.
    """

    function: Function
    zeros: tuple[int, int]
    factors: Sequence[Factor]
    left: int = 0
    zero: int = 0
    limits: tuple[int, int] = (0, 1)

    def turned(self) -> Pairs:
        """Exchange the parameters of x and of y."""
        (x, y), (f, g, h) = self.zeros, self.factors
        return replace(self, zeros=(y, x), factors=(g, f, h))


class PairsRecord(strided.Walk):
    """A walk, and a ``Pairs``."""

    x_zero: int
    y_zero: int
    left: int
    factors: int
    zero: int
    low: int
    high: int


@cache
def kernel(function: int, to: int, first: int, second: int, x_step: int, y_step: int) -> jit.Kernel:
    """Make the kernel of a function from integers of kinds to those of another one.

    The steps are 0 where a single number meets all of a line, else 1.
    """

    @jit.kernel
    def integer_pairs(r: PairsRecord) -> None:
        f, g, h = factor_at(r.factors, 0), factor_at(r.factors, 1), factor_at(r.factors, 2)
        x_zero, y_zero, left = r.x_zero, r.y_zero, r.left
        zero, low, high = r.zero, r.low, r.high
        for group in range(r.begin, r.end):
            z = r.z + strided.offset(r.around, r.axes, 4, 0, group)
            x = r.x + strided.offset(r.around, r.axes, 4, 1, group)
            y = r.y + strided.offset(r.around, r.axes, 4, 2, group)
            for _ in range(r.lines):
                result, a, b = integers_at(z, to), integers_at(x, first), integers_at(y, second)
                for k in range(r.count):
                    p, q = (a[k * x_step] - x_zero) << left, (b[k * y_step] - y_zero) << left
                    computed = _computed(function, p, q, f, g, h) + zero
                    result[k] = min(max(computed, low), high)
                z += r.z_step
                x += r.x_step
                y += r.y_step

    return integer_pairs


@jit.inlined
def _computed(function: int, p: Whole, q: Whole, f: Given, g: Given, h: Given) -> Whole:
    """Compute a function of steps; what is in between has 32 bits."""
    if function == PRODUCT:
        return by_factor(p * q, h)
    if function == BENT:
        kept, bent = by_factor(p, f), by_factor(p * q, g)
        return kept if p >= 0 else bent
    p, q = by_factor(p, f), by_factor(q, g)
    if function == SUM:
        return by_factor(p + q, h)
    if function == DIFFERENCE:
        return by_factor(p - q, h)
    if function == SQUARED_DIFFERENCE:
        return by_factor((p - q) * (p - q), h)
    return _compared(function, p, q)


@jit.inlined
def _compared(function: int, p: Whole, q: Whole) -> Whole:
    if function == LESS:
        return np.int64(p < q)
    if function == LESS_EQUAL:
        return np.int64(p <= q)
    if function == EQUAL:
        return np.int64(p == q)
    return np.int64(p != q)


def step(pairs: Pairs, x: Array, y: Array, z: Array) -> NativeStep:
    """Make the step of a function of integers x and y, z its result."""
    memory, (low, high) = Memory(), pairs.limits
    walk, cut = strided.walk(z, x, y, memory)
    factors = [FactorRecord.of(factor) for factor in pairs.factors]
    record = PairsRecord(
        **walk.fields(),
        x_zero=pairs.zeros[0],
        y_zero=pairs.zeros[1],
        left=pairs.left,
        factors=memory.table(factors, FactorRecord),
        zero=pairs.zero,
        low=low,
        high=high,
    )
    kinds = (int(_kind(array)) for array in (z, x, y))
    compiled = kernel(int(pairs.function), *kinds, *cut.moving)
    return strided.step(compiled, record, z.size, memory)


def _kind(array: Array) -> Kind:
    """Return the integers that an array's elements are; truth values are bytes."""
    dtype = tensor_type(array.dtype)
    return Kind.UINT8 if dtype == TensorType.BOOL else KINDS[dtype]
