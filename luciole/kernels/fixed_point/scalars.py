"""Fixed-point arithmetic inside of kernels, number by number: as ``ir.analysis`` has it.

In 64 bits, of which machines with vectors have enough. C forms have their own, in
``kernels/c/fixed_point.h``: Cortex-M computes with 32 bits, and has instructions for such products.
"""

from __future__ import annotations

import numpy as np

from luciole.ir.analysis.fixed_point import BITS, Integers
from luciole.kernels import jit


def factor_fields(name: str, factor: tuple[Integers, Integers]) -> dict[str, int]:
    """Name the multiplier and the shift of a factor as a record's fields."""
    multiplier, shift = (int(number) for number in factor)
    return {f"{name}_multiplier": multiplier, f"{name}_shift": shift}


@jit.inlined
def wrapped(x: int) -> int:
    """Keep the lowest 32 bits of a number, with their sign."""
    return int(np.int64(np.int32(x)))


@jit.inlined
def rounding_divide(x: int, exponent: int) -> int:
    """Compute x / 2^exponent, halves away from zero."""
    mask = (int(np.int64(1)) << exponent) - 1
    rounds_up = (x & mask) > (mask >> 1) + (x < 0)
    return (x >> exponent) + rounds_up


@jit.inlined
def multiply(x: int, multiplier: int, shift: int) -> int:
    """Multiply a number of 32 bits by a factor whose multiplier is not negative."""
    raised = wrapped(x << max(shift, 0))
    high = (raised * multiplier + (1 << (BITS - 1))) >> BITS
    return rounding_divide(high, max(-shift, 0))


@jit.inlined
def between(x: int, low: int, high: int) -> int:
    """Cut a number off at two limits."""
    return min(max(x, low), high)


@jit.inlined
def quotient(x: int, y: int) -> int:
    """Divide by a positive number without the fraction, as C does."""
    return x // y if x >= 0 else -(-x // y)


@jit.inlined
def times(x: int, y: int) -> int:
    """Multiply two fractions of 31 bits, one of which is not -1, halves up."""
    return (x * y + (1 << (BITS - 1))) >> BITS


@jit.inlined
def raised(x: int, bits: int) -> int:
    """Compute x 2^bits, cut off at the limits of 32 bits."""
    return between(x << bits, -(1 << BITS), (1 << BITS) - 1)


@jit.inlined
def one_over_one_plus(x: int) -> int:
    """Compute 1 / (1 + x) of 0 <= x < 1, as ``functions.one_over_one_plus`` does."""
    half = (x + (1 << BITS)) >> 1
    result = 1515870810 + times(half, -1010580540)
    for _ in range(3):
        result += raised(times(result, (1 << 29) - times(half, result)), 2)
    return raised(result, 1)


@jit.separate
def inverse_root(x: int) -> tuple[int, int]:
    """Compute 1 / sqrt(x) of x from 1 to 2^31 - 1 as a multiplier and a shift, as
    ``functions.inverse_root`` does.
    """
    if x <= 1:
        return (1 << BITS) - 1, 0
    down, pairs = 11, 0
    if x >= 1 << 29:
        x, down = x // 4, 12
    while x << (2 * pairs + 2) < 1 << 29:
        pairs += 1
    half, root = rounding_divide((x << (2 * pairs)) >> 1, 1), 1 << 28
    for _ in range(5):
        cube = raised(times(times(root, root), root), 6)
        root = raised(times((1 << 28) + (1 << 27), root) - times(half, cube), 3)
    down -= pairs
    return times(root, 1518500250) << max(-down, 0), -max(down, 0)
