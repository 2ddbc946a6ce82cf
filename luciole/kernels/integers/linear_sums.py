"""Sums of quantized bytes by one factor for each operand, where that gives what TFLite's two
roundings do: found out by all sums that there are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array
from luciole.ir.dtypes import NUMPY
from luciole.kernels.core.memory import Memory
from luciole.kernels.fixed_point.compiled import Factor
from luciole.kernels.integers.elementwise_binary import Sum
from luciole.kernels.jit.vector.linear_sums import LOWER_BITS, UPPER_BITS, LinearSum

SUM_BITS = 30
"""Bits of the largest sum of products."""

MOST_BITS = 22
"""Bits behind the point of a step."""

LARGEST = 255
"""The magnitude of a step from a zero point, at most."""

Longs = NDArray[np.int64]


def linear_sum(found: Sum, signs: tuple[int, int], memory: Memory) -> dict[str, int]:
    """Keep the ``LinearSum`` of x and y, each times its sign, and return its address, as "tied"
    where halves must be rounded away from zero, else as "linear". There is none where it gives
    something else than the sum does for some pair of bytes.
    """
    first, second = (
        sign * _real(factor) * _real(found.factors[2]) * 2.0**found.left
        for sign, factor in zip(signs, found.factors, strict=False)
    )
    largest = LARGEST * (abs(first) + abs(second))
    if not 0 < largest < 2.0 ** (SUM_BITS - 8):  # factors have 31 bits below
        return {}
    bits = min(MOST_BITS, SUM_BITS - int(np.ceil(np.log2(largest))))
    factors = np.rint(np.array([first, second]) * 2.0 ** (bits + LOWER_BITS)).astype(np.int64)
    made = _record(found, factors, bits)
    steps, right = _totals(found, factors) + made.start, _right(found, signs)
    if np.abs(steps).max() >= 2**31 - 2 * made.half:
        return {}
    for name, more in (("linear", 0), ("tied", steps >> 31)):
        if np.array_equal(_stored(found, (steps + more + made.half) >> made.bits), right):
            start = made.start + (made.half if name == "linear" else 0)
            return {name: memory.record(made.replace(start=start))}
    return {}


def _real(factor: Factor) -> float:
    multiplier, shift = factor
    return float(np.ldexp(float(multiplier), int(shift) - 31))


def _record(found: Sum, factors: Longs, bits: int) -> LinearSum:
    upper, lower = _parts(factors)
    signed = 128 + int(np.iinfo(NUMPY[found.grid.dtype]).min)
    zero_point, low, high = (n - signed for n in (found.grid.zero, *found.grid.limits))
    begin = -int((factors * np.array(found.zeros)).sum())
    return LinearSum(
        zero_point=zero_point,
        low=low,
        high=high,
        turned=signed,
        upper=_joined(upper),
        lower=_joined(lower),
        start=(begin + (1 << (LOWER_BITS - 1))) >> LOWER_BITS,
        half=1 << (bits - 1),
        bits=bits,
    )


def _parts(factors: Longs) -> tuple[Longs, Longs]:
    """Split factors into their upper and lower 16 bits, both signed."""
    lower = factors.astype(np.int16).astype(np.int64)
    return (factors - lower) >> 16, lower


def _joined(pair: Longs) -> int:
    """Put two int16 into one int32, the first one lowest."""
    return int(pair.astype(np.int16).view(np.int32)[0])


def _totals(found: Sum, factors: Longs) -> Longs:
    """Compute the sums of products of all pairs of bytes, as the kernel does."""
    every = _every(found).astype(np.int64)
    above, below = (_outer(every * part[0], every * part[1]) for part in _parts(factors))
    return (above << UPPER_BITS) + (below >> LOWER_BITS)


def _stored(found: Sum, steps: Longs) -> Longs:
    """Return steps as the kernel writes them."""
    kept = np.clip(steps, -(2**15), 2**15 - 1) + found.grid.zero
    return np.clip(kept, *found.grid.limits)


def _right(found: Sum, signs: tuple[int, int]) -> Array:
    """Compute the sums of all pairs of bytes as TFLite does."""
    every = _every(found)
    x, y = (sign * found.scaled(every, slot).astype(np.int64) for slot, sign in enumerate(signs))
    return found.back(_outer(x, y))


def _every(found: Sum) -> Array:
    return np.arange(256, dtype=np.uint8).view(NUMPY[found.grid.dtype])


def _outer(x: Array, y: Array) -> Longs:
    found: Longs = x[:, None] + y
    return found
