"""Integer weights under float activations, as TFLite's reference kernels compute them (dynamic
range).

Other kernels of LiteRT (XNNPACK) quantize the activations asymmetrically; outputs differ by some
percent.
"""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, UnsupportedError, Value

_LARGEST = np.float32(127)


def quantize_rows(x: Array) -> tuple[Array, Array]:
    """Each entry of the first axis on a symmetric int8 grid of its own: integers as float64, and
    scales [n].

    Entries too small for a grid become 0. Where one has a number that is not finite, integers are 0
    and the scale is NaN.
    """
    flat = x.reshape(len(x), -1)
    span = np.abs(flat).max(axis=1, initial=0).astype(np.float32)
    inverse = _LARGEST / span
    finite, small = np.isfinite(span), np.isinf(inverse)
    scales = np.where(small, np.float32(1), np.where(finite, span / _LARGEST, np.float32(np.nan)))
    inverse = np.where(small | ~finite, np.float32(0), inverse)
    scaled = np.where(finite[:, None], flat * inverse[:, None], np.float32(0))
    rounded = np.trunc(scaled + np.copysign(np.float32(0.5), scaled))  # half away from zero
    return np.clip(rounded, -_LARGEST, _LARGEST).reshape(x.shape).astype(np.float64), scales


def weight_scale(weights: Value) -> np.float32:
    """The one scale of symmetric weights. Raises UnsupportedError for any other quantization."""
    scale = one_scale(weights)
    if scale is None:
        raise UnsupportedError("integer weights under float inputs need one scale and zero point 0")
    return scale


def one_scale(weights: Value) -> np.float32 | None:
    """The one scale of symmetric weights, None where they are quantized in another way."""
    q = weights.quantization
    scales = None if q is None else q.scale
    if q is None or scales is None or len(scales) != 1 or np.any(q.zero_point):
        return None
    return np.float32(scales[0])
