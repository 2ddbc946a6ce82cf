"""Arithmetic of quantized tensors on integers alone, bit for bit that of TFLite's reference
kernels: factors as a 31 bit multiplier and a shift, and the limits of a result.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from luciole.ir.dtypes import NUMPY, Array
from luciole.ir.errors import GraphError, LucioleError, UnsupportedError
from luciole.ir.op import Op
from luciole.ir.ops.activations import LIMITS
from luciole.ir.quant import Grid
from luciole.ir.quantization import rounded
from luciole.schema.enums import ActivationFunctionType, TensorType

Integers = NDArray[np.int32]
Longs = NDArray[np.int64]

BITS = 31
"""A multiplier is a fraction with as many bits behind the point."""

LARGEST_SHIFT = 30
"""Factors are below 2^30: the power of two in front of a fraction is an int32."""

FRACTION = 15
"""Bits behind the point of multipliers of wide numbers."""

LARGEST_WIDE_SHIFT = 14
"""Where a fraction has 15 bits, there must be one left to round by."""


def quantize_multiplier(
    factor: ArrayLike, largest_shift: int = LARGEST_SHIFT
) -> tuple[Integers, Integers]:
    """Split factors (float64) into multiplier / 2^31 * 2^shift: TFLite's QuantizeMultiplier.

    Multipliers are 2^30 to 2^31 - 1 in magnitude, or 0 where the factor is below 2^-32.
    Raises LucioleError for a factor that is not finite or at least 2^largest_shift.
    """
    factors = np.asarray(factor, np.float64)
    fraction, shift = np.frexp(factors)
    multiplier = rounded(fraction * 2.0**BITS)
    full = multiplier == 2.0**BITS
    multiplier, shift = np.where(full, multiplier / 2, multiplier), shift + full
    small = shift < -BITS
    if not np.isfinite(factors).all() or (shift > largest_shift).any():
        reason = f"scales make a factor of {np.abs(factors).max()}"
        raise LucioleError(f"{reason}; up to 2^{largest_shift} is needed")
    multiplier, shift = np.where(small, 0, multiplier), np.where(small, 0, shift)
    return multiplier.astype(np.int32), shift.astype(np.int32)


def mean_multiplier(scale: np.float32, to: np.float32, count: int) -> tuple[Integers, Integers]:
    """Return multiplier and shift of scale / (to count), as TFLite's QuantizedMeanOrSum makes them.

    With a count of 1 they are those of scale / to.
    """
    multiplier, shift = quantize_multiplier(float(scale) / float(to))
    extra_bits = min(count.bit_length() - 1, 32, 31 + int(shift))
    reduced = (int(multiplier) << extra_bits) // count
    return np.asarray(reduced, np.int32), np.asarray(shift - extra_bits, np.int32)


def rounding_divide(x: ArrayLike, exponent: ArrayLike) -> Integers:
    """Compute x / 2^exponent, halves away from zero: gemmlowp's RoundingDivideByPOT."""
    wide, down = np.asarray(x, np.int64), np.asarray(exponent, np.int64)
    mask = (np.int64(1) << down) - 1
    rounds_up = (wide & mask) > (mask >> 1) + (wide < 0)
    return ((wide >> down) + rounds_up).astype(np.int32)


def high_multiply(x: ArrayLike, multiplier: ArrayLike) -> Integers:
    """Compute x multiplier / 2^31, halves up, saturated: gemmlowp's
    SaturatingRoundingDoublingHighMul.
    """
    product = np.asarray(x, np.int64) * np.asarray(multiplier, np.int64)
    result = (product + (1 << (BITS - 1))) >> BITS
    saturated: Integers = np.minimum(result, np.iinfo(np.int32).max).astype(np.int32)
    return saturated


def multiply(x: ArrayLike, multiplier: ArrayLike, shift: ArrayLike) -> Integers:
    """Multiply x by a factor: TFLite's MultiplyByQuantizedMultiplier of int32, which rounds twice
    and, as the builds of LiteRT do, wraps around where a factor above 1 leads beyond 32 bits.
    """
    up, down = np.maximum(shift, 0), np.maximum(np.negative(shift), 0)
    raised = (np.asarray(x, np.int64) << up).astype(np.int32)
    return rounding_divide(high_multiply(raised, multiplier), down)


def multiply_wide(x: ArrayLike, multiplier: ArrayLike, shift: ArrayLike) -> Integers:
    """Multiply x by a factor: TFLite's MultiplyByQuantizedMultiplier of int64, whose multipliers
    have 15 bits.
    """
    reduced, total = reduced_multiplier(multiplier, shift)
    rounded = np.asarray(x, np.int64) * reduced + (np.int64(1) << (total - 1))
    return (rounded >> total).astype(np.int32)


def reduced_multiplier(multiplier: ArrayLike, shift: ArrayLike) -> tuple[Longs, Longs]:
    """Return a multiplier reduced to 15 bits, and by how many bits its products are too large.

    Raises LucioleError where there is none to round by.
    """
    wide = np.asarray(multiplier, np.int64)
    reduced = np.where(wide < 0x7FFF0000, (wide + (1 << 15)) >> 16, 0x7FFF)
    total = FRACTION - np.asarray(shift, np.int64)
    if (total < FRACTION - LARGEST_WIDE_SHIFT).any():
        largest = FRACTION - total.min()
        raise LucioleError(f"scales make a factor of 2^{largest}; below 2^14 is needed")
    return reduced, total


def activation_range(
    activation: ActivationFunctionType, dtype: TensorType, scale: np.float32, zero_point: int
) -> tuple[int, int]:
    """Compute the least and the largest result: TFLite's CalculateActivationRangeQuantized.

    Raises UnsupportedError for another activation than those that cut off, and LucioleError where
    a limit is too many steps of the scale for int32.
    """
    if activation not in LIMITS:
        raise UnsupportedError(f"fused activation {activation.name} is not supported for integers")
    limits = np.iinfo(NUMPY[dtype])
    low, high = LIMITS[activation]
    least, most = limits.min, limits.max
    if np.isfinite(low):
        least = max(least, _steps(low, scale, zero_point))
    if np.isfinite(high):
        most = min(most, _steps(high, scale, zero_point))
    return int(least), int(most)


def _steps(number: float, scale: np.float32, zero_point: int) -> int:
    """Return the integer that stands for a real number."""
    with np.errstate(over="ignore"):
        steps = np.float32(number) / scale
    if not abs(steps) < 2.0**BITS:
        raise LucioleError(f"the result's scale {scale} is too small for its activation")
    return zero_point + int(rounded(steps))


def fixed_result(op: Op, dtype: TensorType) -> Grid:
    """Return the one scale and zero point that kernels give to an operator's results of this
    type.
    """
    grid = op.quantized_as.fixed(dtype)
    if grid is None:
        raise GraphError(f"{op}: no scale of {dtype.name} results is fixed")
    return grid


def requantized(
    scaled: Integers, zero_point: int, limits: tuple[int, int], dtype: TensorType
) -> Array:
    """Add the result's zero point to scaled products, cut off at its limits."""
    return np.clip(scaled.astype(np.int64) + zero_point, *limits).astype(NUMPY[dtype])
