"""Integer weights under float activations, as TFLite's reference kernels compute them (dynamic
range): activations are quantized when the operator runs, a grid for each image or row.

Other kernels of LiteRT (XNNPACK) quantize the activations in another way; outputs differ by some
percent.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array, TensorType, UnsupportedError, Value
from luciole.ir.quantization import Affine, rounded
from luciole.kernels.core.reasons import Declined, accepted

Floats = NDArray[np.float32]

_LARGEST = np.float32(127)
_LEAST, _MOST = -128.0, 127.0

FLOAT32, UINT8 = TensorType.FLOAT32, TensorType.UINT8
_WEIGHTS = (TensorType.INT8, TensorType.INT4, UINT8)
SIGNATURES = (
    *((FLOAT32, weights) for weights in _WEIGHTS),
    *((FLOAT32, weights, FLOAT32) for weights in _WEIGHTS),
)
"""Element types of activations, weights and bias (or none)."""


def signed(weights: Array) -> Array:
    """Return weights as signed integers: files from before TFLite had INT8 call them UINT8."""
    return weights.view(np.int8)


def quantize_rows(x: Array) -> tuple[Array, Floats]:
    """Quantize each entry of the first axis on a symmetric int8 grid of its own: integers as
    float64, and scales [n].

    Entries too small for a grid become 0. Where one has a number that is not finite, integers are 0
    and the scale is NaN.
    """
    flat = _entries(x)
    span = np.abs(flat).max(axis=1, initial=0).astype(np.float32)
    inverse = _LARGEST / span
    finite, small = np.isfinite(span), np.isinf(inverse)
    scales = np.where(small, np.float32(1), np.where(finite, span / _LARGEST, np.float32(np.nan)))
    inverse = np.where(small | ~finite, np.float32(0), inverse)
    scaled = np.where(finite[:, None], flat * inverse[:, None], np.float32(0))
    return np.clip(_nearest(scaled), -_LARGEST, _LARGEST).reshape(x.shape), scales


def quantize_rows_with_zero(x: Array) -> tuple[Array, Floats]:
    """Quantize each entry of the first axis on a grid from its least to its largest number, 0 among
    them: integers less the zero point as float64, and scales [n]. TFLite's
    AsymmetricQuantizeFloats.
    """
    flat = _entries(x).astype(np.float32)
    least, most = (f(axis=1, initial=0).astype(np.float64) for f in (flat.min, flat.max))
    finite = np.isfinite(least) & np.isfinite(most)
    least, most = np.where(finite, least, 0), np.where(finite, most, 0)
    flatness = least == most
    scale = np.where(flatness, 1.0, (most - least) / (_MOST - _LEAST))
    points = _zero_points(least / scale, most / scale).astype(np.float32)
    scales = np.where(finite, scale, np.nan).astype(np.float32)
    inverse = (1.0 / scales.astype(np.float64)).astype(np.float32)
    usable = finite & ~flatness & np.isfinite(inverse)
    inverse = np.where(usable, inverse, np.float32(0))
    steps = _nearest(np.where(usable[:, None], flat, 0) * inverse[:, None])
    integers = np.clip(steps, _LEAST - points[:, None], _MOST - points[:, None])
    return np.where(usable[:, None], integers, 0).reshape(x.shape), scales


def _nearest(steps: Array) -> Array:
    """Round to the nearest integers as float64, halves away from zero, as TFLite's vector code
    does: the float below a half goes up too, because its sum with 0.5 is rounded. (TFLite takes the
    last numbers of a row, up to seven, one by one, where that float does not.)
    """
    nearest = np.trunc(steps + np.copysign(np.float32(0.5), steps))
    return np.asarray(nearest, np.float64)


def _entries(x: Array) -> Array:
    """Return a row for each entry of the first axis, also where there is none."""
    return x.reshape(len(x), math.prod(x.shape[1:]))


def of_rows(x: Array, *, asymmetric: bool) -> tuple[Array, Floats]:
    """Quantize rows with or without a zero point, as an operator's attribute says."""
    return quantize_rows_with_zero(x) if asymmetric else quantize_rows(x)


def _zero_points(least: Array, most: Array) -> Array:
    """Compute the integer of 0 on grids that begin and end at these steps from it: the one of two
    that is computed with less error.
    """
    of_least, of_most = _LEAST - least, _MOST - most
    nearer = abs(_LEAST) + np.abs(least) < abs(_MOST) + np.abs(most)
    chosen = np.where(nearer, of_least, of_most)
    return np.asarray(np.clip(rounded(chosen), _LEAST, _MOST))


def weight_scales(weights: Value, axis: int) -> Floats:
    """Return the scales of symmetric weights, one, or one for each index of ``axis``, the outputs.

    Raises LucioleError for any other quantization.
    """
    return Affine.of_weights(weights, axis).scale


def one_scale(weights: Value, *, alike: bool = False) -> np.float32 | None:
    """Return the one scale of symmetric weights, None where they are quantized in another way.
    ``alike``: several scales that are the same count as one.
    """
    scales = accepted(weight_scales, weights, 0)
    if isinstance(scales, Declined):
        return None
    one = len(scales) == 1 or (alike and bool(np.all(scales == scales[0])))
    return np.float32(scales[0]) if one else None


def weight_scale(weights: Value, *, alike: bool = False) -> np.float32:
    """Return the one scale of symmetric weights, see ``one_scale``. Raises LucioleError where they
    are quantized in another way.
    """
    scale = one_scale(weights, alike=alike)
    if scale is None:
        raise UnsupportedError("integer weights under float inputs need one scale and zero point 0")
    return scale
