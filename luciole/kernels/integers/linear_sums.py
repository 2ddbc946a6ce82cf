"""Sums of quantized bytes by one factor for each operand, where that gives the results of TFLite's
roundings: found out by all sums that there are.

Steps of the result rise with the bytes of both operands, so that factors of few bits will do where
they are chosen well: all (x, y) are on the right side of the plane between two steps or not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array
from luciole.ir.dtypes import NUMPY
from luciole.kernels.core.memory import Memory
from luciole.kernels.fixed_point.compiled import Factor
from luciole.kernels.integers.elementwise_binary import Sum
from luciole.kernels.jit.vector.linear_sums import LOWER_BITS, LinearSum

SUM_BITS = 30
"""Bits of the largest sum of products."""

MOST_BITS = 22
"""Bits behind the point of a step."""

LARGEST = 255
"""The magnitude of a step from a zero point, at most."""

FACTOR_BITS = 15 + LOWER_BITS
"""Bits of a factor besides its sign."""

AROUND = 1
"""How far factors are moved to find ones that give all sums, in steps of the last bit."""

NOWHERE = 1 << 40
"""A limit that no sum reaches."""

Longs = NDArray[np.int64]


class Halves(IntEnum):
    """Where sums between two steps go."""

    UP = 0
    AWAY = 1
    """From zero."""


def linear_sum(grids: Sum, signs: tuple[int, int], memory: Memory) -> tuple[Halves, int] | None:
    """Keep the ``LinearSum`` of x and y, each times its sign, and return its rounding and address;
    None where no factors that are tried give the sum's results for all pairs of bytes.
    """
    tried = _tried(grids, signs)
    return None if tried is None else (tried[0], memory.record(tried[1]))


@lru_cache(1024)  # plans of a network that is quantized ask for the same sums again and again
def _tried(grids: Sum, signs: tuple[int, int]) -> tuple[Halves, LinearSum] | None:
    """Try factors for the sum of all pairs of bytes."""
    sums = _Sums.of(grids, signs)
    if not 0 < sums.largest < 2.0 ** (SUM_BITS - 8):
        return None
    bits = sums.bits
    for halves in Halves:
        record = sums.record(halves, bits) if bits > 0 else None
        if record is not None:
            return halves, record
    return None


def _real(factor: Factor) -> float:
    multiplier, shift = factor
    return float(np.ldexp(float(multiplier), int(shift) - 31))


class _Near(NamedTuple):
    """Pairs of raised bytes [n], and between which sums the step of each lies; beyond the result's
    limits are more.
    """

    x: Longs
    y: Longs
    least: Longs
    most: Longs


@dataclass(frozen=True)
class _Sums:
    """The steps of the result that all pairs of bytes give, [256, 256], from its zero point, and
    the real factors of the bytes.
    """

    found: Sum
    factors: tuple[float, float]
    steps: Longs

    @classmethod
    def of(cls, grids: Sum, signs: tuple[int, int]) -> _Sums:
        """Compute the sums as TFLite does; ``signs`` are those of x and y."""
        first, second = (
            sign * _real(factor) * _real(grids.factors[2]) * 2.0**grids.left
            for sign, factor in zip(signs, grids.factors, strict=False)
        )
        every = np.arange(-128, 128) + 128 - _raised(grids)
        stored = every.astype(NUMPY[grids.grid.dtype])
        x, y = (
            sign * grids.scaled(stored, slot).astype(np.int64) for slot, sign in enumerate(signs)
        )
        steps = grids.back(_outer(x, y)).astype(np.int64) - grids.grid.zero
        return cls(grids, (first, second), steps)

    @property
    def largest(self) -> float:
        """The largest magnitude of a sum, in steps."""
        return LARGEST * sum(map(abs, self.factors))

    @property
    def bits(self) -> int:
        """How many bits behind the point of a step factors and sums have room for."""
        largest, whole = np.ceil(np.log2([max(map(abs, self.factors)), self.largest]))
        return int(min(MOST_BITS, SUM_BITS - whole, FACTOR_BITS - largest))

    def record(self, halves: Halves, bits: int) -> LinearSum | None:
        """Find factors and a start that give all steps."""
        near = self._near(bits)
        for factors in _around(self.factors, bits):
            start = self._start(halves, factors, bits, near)
            if start is not None and self._is_right(halves, factors, bits, start):
                return _record(self.found, factors, bits, start)
        return None

    @cached_property
    def _zeros(self) -> Longs:
        """Zero points of x and y raised as their bytes are."""
        return np.array(self.found.zeros, np.int64) + _raised(self.found)

    def _near(self, bits: int) -> _Near:
        """Find the pairs of bytes that lie near a plane between two steps."""
        every, (first, second) = np.arange(256), self.factors
        total = _outer(first * (every - self._zeros[0]), second * (every - self._zeros[1]))
        away = 2 * LARGEST * (AROUND + 1) * 2.0**-bits + 2.0**-10
        x, y = np.nonzero(np.abs(total % 1 - 0.5) <= away)
        steps, (low, high) = self.steps[x, y], self._edges
        least = np.where(steps > low, steps << bits, -NOWHERE)
        most = np.where(steps < high, ((steps + 1) << bits) - 1, NOWHERE)
        return _Near(x, y, least, most)

    @property
    def _edges(self) -> tuple[int, int]:
        """The least and the largest step."""
        low, high = self.found.grid.limits
        return low - self.found.grid.zero, high - self.found.grid.zero

    def _start(self, halves: Halves, factors: Longs, bits: int, near: _Near) -> int | None:
        """Find a start of the sums of products with which the sums of pairs near a plane are
        right.
        """
        products = factors[0] * near.x + factors[1] * near.y
        if halves == Halves.AWAY:
            start = -int((factors * self._zeros).sum())
            sums = _to_halves(products + start, bits)
            return start if (near.least <= sums).all() and (sums <= near.most).all() else None
        first = (near.least - products).max(initial=-NOWHERE)
        last = (near.most - products).min(initial=NOWHERE)
        return int(first + last) // 2 if first <= last else None

    def _is_right(self, halves: Halves, factors: Longs, bits: int, start: int) -> bool:
        """Compute all sums as the kernel does, and compare."""
        every = np.arange(256)
        total = _outer(factors[0] * every, factors[1] * every) + start
        if halves == Halves.AWAY:
            total = _to_halves(total, bits)
        if np.abs(total).max() >= 2**31:
            return False
        kept = np.clip(total >> bits, -(2**15), 2**15 - 1)
        return bool(np.array_equal(np.clip(kept, *self._edges), self.steps))


def _to_halves(total: Longs, bits: int) -> Longs:
    """Add half of a step, a bit less to negative sums."""
    return total + (total >> 63) + (1 << (bits - 1))


def _around(factors: tuple[float, float], bits: int) -> Iterator[Longs]:
    """Give integers next to the real factors, the nearest first."""
    middle = np.rint(np.array(factors) * 2.0**bits).astype(np.int64)
    moves = np.indices((2 * AROUND + 1,) * 2).reshape(2, -1).T - AROUND
    for move in moves[np.argsort(np.square(moves).sum(1), kind="stable")]:
        yield middle + move


def _record(grids: Sum, factors: Longs, bits: int, start: int) -> LinearSum:
    upper, lower = factors >> LOWER_BITS, factors & ((1 << LOWER_BITS) - 1)
    signed = _raised(grids)
    zero_point, low, high = (n - 128 + signed for n in (grids.grid.zero, *grids.grid.limits))
    return LinearSum(
        zero_point=zero_point,
        low=low,
        high=high,
        turned=128 - signed,
        upper=_joined(upper),
        lower=_joined(lower),
        start=start,
        half=1 << (bits - 1),
        bits=bits,
    )


def _raised(grids: Sum) -> int:
    """Return the number that, added to stored bytes, leaves them without a sign."""
    return -int(np.iinfo(NUMPY[grids.grid.dtype]).min)


def _joined(pair: Longs) -> int:
    """Put two int16 into one int32, the first one lowest."""
    return int(pair.astype(np.int16).view(np.int32)[0])


def _outer(x: Array, y: Array) -> Array:
    return np.asarray(np.add.outer(x, y))
