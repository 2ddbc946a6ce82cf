"""The scales, zero points and codes that Samsung ONE's circle-quantizer computes.

Formulas are those of ONE's compiler/luci/pass/src: QuantizationUtils.cpp
(``compute_asym_scale_zp``, ``compute_sym_scale``, ``make_predefined_qparam``), QuantizeWeights.cpp
and QuantizeBias.cpp. Halves are rounded away from zero, scales are computed in float64 and stored
in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.quantization import Affine, rounded
from luciole.lquantizer.formats.affine import Range

_LEAST = {TensorType.UINT8: 1e-5, TensorType.INT8: 1e-8, TensorType.INT16: 1e-8}
"""The smallest scale by element type."""
_MOST = {TensorType.INT8: 127, TensorType.INT16: 32767}
"""The largest code of symmetric integers, the smallest being minus that."""
_WIDE = {TensorType.UINT8: TensorType.INT32, TensorType.INT16: TensorType.INT64}
"""The element type of biases, by that of the input."""


class Coded(NamedTuple):
    """A constant as integers: its codes, and what they stand for."""

    codes: Array
    affine: Affine

    @property
    def values(self) -> Array:
        """The real numbers, in float32."""
        return self.affine.decode(self.codes).astype(np.float32)


def of_limits(limits: Range, dtype: TensorType) -> Affine:
    """Choose scale and zero point of UINT8 (asymmetric), or of INT8 or INT16 (symmetric), for
    numbers between two limits.
    """
    scale, point = _parameters(limits, dtype)
    return Affine.single(scale, point, dtype)


def _parameters(limits: Range, dtype: TensorType) -> tuple[float, int]:
    low, high = (float(np.float32(limit)) for limit in limits)
    if dtype != TensorType.UINT8:
        return max(max(-low, high, 0.0) / _MOST[dtype], _LEAST[dtype]), 0
    scale = max((max(high, 0.0) - min(low, 0.0)) / 255, _LEAST[dtype])
    return scale, int(np.clip(_nearest(-min(low, 0.0) / scale), 0, 255))


def _nearest(number: float) -> int:
    return int(rounded(np.float64(number)))


def weights(data: Array, dtype: TensorType, axis: int | None) -> Coded:
    """Quantize weights, with a scale and zero point for each index of an axis, or with one where
    there is no such axis.
    """
    axis = axis if axis is not None and axis < data.ndim else None
    rows = data.reshape(1, -1) if axis is None else np.moveaxis(data, axis, 0)
    rows = rows.reshape(len(rows), -1)
    ends = [(float(row.min(initial=0.0)), float(row.max(initial=0.0))) for row in rows]
    parameters = [_parameters(limits, dtype) for limits in ends]
    scales, points = (np.array(numbers) for numbers in zip(*parameters, strict=True))
    affine = Affine.channels(scales, points, axis or 0, dtype)
    return Coded(_codes(data, affine), affine)


def with_parameters(data: Array, affine: Affine) -> Coded:
    """Quantize a constant with a given scale and zero point."""
    return Coded(_codes(data, affine), affine)


def _codes(data: Array, affine: Affine) -> Array:
    codes = affine.encode(data.astype(np.float64))
    least = -_MOST[affine.dtype] if affine.dtype in _MOST else 0
    return np.maximum(codes, least)


def single_values(data: Array, dtype: TensorType) -> Coded:
    """Quantize one number for each channel, along the last axis: its size is the scale, its sign
    the code.
    """
    flat = data.reshape(-1)
    below = flat < 0
    is_unsigned = dtype == TensorType.UINT8
    points = (below & is_unsigned).astype(np.int64)
    codes = np.where(below, 0 if is_unsigned else -1, 1)
    affine = Affine.channels(np.abs(flat), points, data.ndim - 1, dtype)
    return Coded(codes.reshape(data.shape).astype(np.uint8 if is_unsigned else np.int16), affine)


def bias(data: Array, of_input: Affine, of_weights: Affine) -> Coded:
    """Quantize a bias: INT32, or INT64 under INT16, in steps of the input's scale times the
    weights'.
    """
    steps = of_input.scale * of_weights.scale
    dtype = _WIDE[of_input.dtype]
    affine = Affine.channels(steps, np.zeros(len(steps)), 0, dtype)
    inverse = np.float32(1) / np.where(steps > 0, steps, np.inf).astype(np.float32)
    codes = rounded((data.reshape(-1) * inverse).astype(np.float32)).astype(np.float64)
    low, high = affine.limits
    return Coded(np.clip(codes, low, high).astype(np.int64).astype(_STORED[dtype]), affine)


_STORED = {TensorType.INT32: np.int32, TensorType.INT64: np.int64}

PREDEFINED: dict[str, dict[TensorType, tuple[float, int]]] = {
    "LOGISTIC": {TensorType.UINT8: (1 / 256, 0), TensorType.INT16: (1 / 32768, 0)},
    "TANH": {TensorType.UINT8: (2 / 256, 128), TensorType.INT16: (1 / 32768, 0)},
    "SOFTMAX": {TensorType.UINT8: (1 / 255, 0), TensorType.INT16: (1 / 32767, 0)},
}
"""Scales and zero points of results whose range is known, by the operator's name."""
WHOLE: Sequence[str] = ("FLOOR", "FLOOR_DIV", "FLOOR_MOD", "CEIL")
"""Operators that give whole numbers, which get a whole scale."""


def predefined(kind: str, dtype: TensorType) -> Affine:
    """Give the scale and zero point of an operator's result whose range is known."""
    return Affine.single(*PREDEFINED[kind][dtype], dtype)


def whole(affine: Affine) -> Affine:
    """Round a scale to a whole number, at least 1; the zero point stays."""
    scale, point = affine.parameters
    return Affine.channels(np.maximum(rounded(scale), 1), point, 0, affine.dtype)
