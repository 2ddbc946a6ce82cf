"""Affine quantized tensors as the real numbers that they stand for, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from luciole.ir import Array, Value
from luciole.ir.dtypes import NUMPY
from luciole.kernels.integers.fixed_point import rounded

REAL = frozenset(np.dtype(t) for t in (np.uint8, np.float32, np.float64))
"""Types of arrays of real numbers that callers have: images, and what NumPy computes in."""


def takes_real(value: Value) -> bool:
    """Whether an input takes real numbers of any of these types: a float32 or a quantized one."""
    return NUMPY.get(value.dtype) == np.float32 or is_quantized(value)


def as_input(value: Value, array: Array) -> Array:
    """Real numbers as an input that ``takes_real`` stores them; anything else, and what is of the
    input's own type already, as it is.
    """
    if array.dtype not in REAL or array.dtype == NUMPY.get(value.dtype) or not takes_real(value):
        return array
    numbers = array.astype(np.float32)
    return quantized(value, numbers) if is_quantized(value) else numbers


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


def same_numbers(a: Value, b: Value) -> bool:
    """Whether equal contents of two tensors of one type stand for equal numbers."""
    if not is_quantized(a) or not is_quantized(b):
        return is_quantized(a) == is_quantized(b)
    rank = max(len(a.dims), len(b.dims))
    pairs = zip(_parameters(a, rank), _parameters(b, rank), strict=True)
    return all(np.array_equal(x, y) for x, y in pairs)


def real(value: Value, stored: Array) -> Array:
    """A tensor's contents as float64: scale (q - zero point) where it is quantized."""
    if not is_quantized(value):
        return stored.astype(np.float64)
    return to_real(stored, *_parameters(value, stored.ndim))


def quantized(value: Value, numbers: Array) -> Array:
    """Real numbers as a quantized tensor has them: see ``to_stored``."""
    return to_stored(numbers, *_parameters(value, numbers.ndim), NUMPY[value.dtype])


def to_real(stored: Array, scale: Array | float, zero_point: Array | int) -> Array:
    """scale (q - zero point) as float64."""
    answer: Array = (stored.astype(np.float64) - zero_point) * scale
    return answer


def to_stored(
    numbers: Array, scale: Array | float, zero_point: Array | int, dtype: np.dtype[Any]
) -> Array:
    """round(x / scale) + zero point, saturated; halves go away from zero, as in TFLite."""
    nearest = rounded(numbers.astype(np.float64) / scale) + zero_point
    limits = np.iinfo(dtype)
    stored: Array = np.clip(nearest, limits.min, limits.max).astype(dtype)
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
