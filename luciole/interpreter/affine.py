"""Affine quantized tensors as the real numbers that they stand for, and back."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, Value
from luciole.ir.dtypes import NUMPY
from luciole.kernels.integers.fixed_point import rounded


def is_quantized(value: Value) -> bool:
    """Whether a tensor's integers stand for real numbers, by scales and zero points."""
    found = value.quantization
    if found is None or found.scale is None or not len(found.scale):
        return False
    return value.dtype in NUMPY and NUMPY[value.dtype].kind in "iu"


def scale_of(value: Value) -> float | None:
    """The one scale of a quantized tensor, None where there is none or several."""
    found = value.quantization
    if found is None or found.scale is None or not is_quantized(value) or len(found.scale) != 1:
        return None
    return float(found.scale[0])


def real(value: Value, stored: Array) -> Array:
    """A tensor's contents as float64: scale (q - zero point) where it is quantized."""
    wide: Array = stored.astype(np.float64)
    if not is_quantized(value):
        return wide
    scale, zero_point = _parameters(value, stored.ndim)
    answer: Array = (wide - zero_point) * scale
    return answer


def quantized(value: Value, numbers: Array) -> Array:
    """Real numbers as a quantized tensor has them: round(x / scale) + zero point, saturated."""
    scale, zero_point = _parameters(value, numbers.ndim)
    nearest = rounded(numbers.astype(np.float64) / scale) + zero_point
    limits = np.iinfo(NUMPY[value.dtype])
    stored: Array = np.clip(nearest, limits.min, limits.max).astype(NUMPY[value.dtype])
    return stored


def _parameters(value: Value, rank: int) -> tuple[Array, Array]:
    """Scales and zero points, shaped to stretch along the quantized axis."""
    found = value.quantization
    assert found is not None  # is_quantized
    assert found.scale is not None
    scale = found.scale.astype(np.float64)
    points = found.zero_point
    zero_point = np.zeros(1) if points is None or not len(points) else points.astype(np.float64)
    axes = [1] * rank
    if scale.size > 1:
        axes[found.quantized_dimension] = scale.size
    return scale.reshape(axes), np.broadcast_to(zero_point, scale.shape).reshape(axes)
