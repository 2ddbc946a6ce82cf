"""Uniform (affine) integers, chosen by the range of what they stand for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from luciole.ir import TensorType
from luciole.ir.dtypes import limits_of
from luciole.ir.quantization import Affine

Range = tuple[float, float]
"""The least and the largest number."""


def of_range(limits: Range, dtype: TensorType) -> Affine:
    """Choose scale and zero point of integers that reach from the least to the largest of
    ``limits``, as ``reached`` widens them.
    """
    return of_ranges(np.array([limits]), dtype)


def of_ranges(limits: NDArray[np.float64], dtype: TensorType) -> Affine:
    """Choose scales and zero points along axis 0, those of ``of_range`` for each pair of ``limits``
    [n, 2].
    """
    low, high = np.minimum(limits[:, 0], 0.0), np.maximum(limits[:, 1], 0.0)
    codes = limits_of(dtype)
    if dtype == TensorType.INT16:
        scale = _positive(np.maximum(-low, high), codes[1])
        return Affine.channels(scale, np.zeros(len(scale)), 0, dtype)
    scale = _positive(high - low, codes[1] - codes[0])
    points = np.clip(np.round(codes[0] - low / scale), *codes)
    return Affine.channels(scale, points, 0, dtype)


def reached(limits: Range, dtype: TensorType) -> Range:
    """Widen limits to the range of a type's integers that hold them: to 0, which gets a code of its
    own (TFLite's 8-bit quantization specification), and with 16 bits as far on both sides of it, as
    their zero point is 0.
    """
    low, high = min(limits[0], 0.0), max(limits[1], 0.0)
    if dtype == TensorType.INT16:
        return -max(-low, high), max(-low, high)
    return low, high


def _positive(spans: NDArray[np.float64], codes: int) -> NDArray[np.float64]:
    """Return scales as stored; a tensor that is 0 throughout spans 1: a layer's bias, which has the
    product of its input's and its weights' scales, would be lost with much larger ones.
    """
    scales = (spans / codes).astype(np.float32)
    return np.where(scales > 0, scales, np.float32(1 / codes)).astype(np.float64)
