"""The arithmetic of ``ir.analysis.fixed_point``, as kernels know it."""

from __future__ import annotations

from luciole.ir.analysis.fixed_point import (
    BITS,
    FRACTION,
    LARGEST_SHIFT,
    LARGEST_WIDE_SHIFT,
    Integers,
    Longs,
    activation_range,
    fixed_result,
    high_multiply,
    mean_multiplier,
    multiply,
    multiply_wide,
    quantize_multiplier,
    reduced_multiplier,
    requantized,
    rounding_divide,
)

__all__ = [
    "BITS",
    "FRACTION",
    "LARGEST_SHIFT",
    "LARGEST_WIDE_SHIFT",
    "Integers",
    "Longs",
    "activation_range",
    "fixed_result",
    "high_multiply",
    "mean_multiplier",
    "multiply",
    "multiply_wide",
    "quantize_multiplier",
    "reduced_multiplier",
    "requantized",
    "rounding_divide",
]
