"""Fixed-point arithmetic inside of kernels, number by number: exactly what ``arithmetic`` does."""

from __future__ import annotations

import numpy as np

from luciole.kernels import jit
from luciole.kernels.fixed_point.arithmetic import BITS, Integers


def factor_fields(name: str, factor: tuple[Integers, Integers]) -> dict[str, int]:
    """Name the multiplier and the shift of a factor as a record's fields."""
    multiplier, shift = (int(number) for number in factor)
    return {f"{name}_multiplier": multiplier, f"{name}_shift": shift}


@jit.merged
def wrapped(x: int) -> int:
    """Keep the lowest 32 bits of a number, with their sign."""
    return int(np.int64(np.int32(x)))


@jit.merged
def rounding_divide(x: int, exponent: int) -> int:
    """Compute x / 2^exponent, halves away from zero."""
    mask = (int(np.int64(1)) << exponent) - 1
    more = (x & mask) > (mask >> 1) + (x < 0)
    return (x >> exponent) + more


@jit.merged
def multiply(x: int, multiplier: int, shift: int) -> int:
    """Multiply a number of 32 bits by a factor whose multiplier is not negative."""
    raised = wrapped(x << max(shift, 0))
    high = (raised * multiplier + (1 << (BITS - 1))) >> BITS
    return rounding_divide(high, max(-shift, 0))


@jit.merged
def between(x: int, low: int, high: int) -> int:
    """Cut a number off at two limits."""
    return min(max(x, low), high)
