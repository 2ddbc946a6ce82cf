"""QUANTIZE and DEQUANTIZE kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, LucioleError, Op, TensorType, UnsupportedError, Value
from luciole.ir.dtypes import NUMPY
from luciole.ir.ops.quantize import Dequantize, Quantize
from luciole.kernels import conversions
from luciole.kernels.registry import Context, NativeStep, native, reference

TYPES = (TensorType.INT8, TensorType.UINT8, TensorType.INT16)

LARGEST_ZERO_POINT = 1 << 16
"""Beyond what 16 bits can hold; sums and differences up to here are exact in single precision."""


def parameters(op: Op, value: Value, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Scales (float32) and zero points (int64) of a value, shaped to stretch to ``shape``.

    Raises LucioleError when there are none or they do not fit the value.
    """
    for fault in op.verify():
        raise LucioleError(fault)
    found = value.quantization
    assert found is not None  # else verify has spoken
    scale = np.asarray(found.scale, np.float32)
    points = found.zero_point
    zero_point = np.zeros(1, np.int64) if points is None or not len(points) else np.asarray(points)
    channels = [1] * len(shape)
    if scale.size > 1:
        channels[found.quantized_dimension] = scale.size
        if shape[found.quantized_dimension] != scale.size:
            raise LucioleError(f"{scale.size} scales do not fit the axes {list(shape)}")
    return scale.reshape(channels), np.broadcast_to(zero_point, scale.shape).reshape(channels)


@reference(Quantize, TensorType.FLOAT32)
def quantize(op: Quantize, x: Array) -> Array:
    """round(x / scale) + zero point, saturated. Raises UnsupportedError for other result types."""
    to = op.output.dtype
    if to not in TYPES:
        have = ", ".join(t.name for t in TYPES)
        raise UnsupportedError(f"no quantization to {to.name}; there is {have}")
    scale, zero_point = parameters(op, op.output, x.shape)
    limits = np.iinfo(NUMPY[to])
    with np.errstate(all="ignore"):
        steps = (x / scale).astype(np.float64)
    rounded = np.copysign(np.floor(np.abs(steps) + 0.5), steps) + zero_point
    filled = np.where(np.isnan(rounded), limits.min, rounded)
    return np.clip(filled, limits.min, limits.max).astype(NUMPY[to])


@reference(Dequantize, *TYPES)
def dequantize(op: Dequantize, x: Array) -> Array:
    """scale (x - zero point)."""
    scale, zero_point = parameters(op, op.input, x.shape)
    return np.asarray((x - zero_point) * scale, np.float32)


@reference(Dequantize, TensorType.FLOAT16)
def widen(op: Dequantize, x: Array) -> Array:
    """The same numbers in single precision."""
    return x.astype(np.float32)


@native(Quantize, TensorType.FLOAT32)
def build_quantize(op: Quantize, context: Context) -> NativeStep | None:
    """One scale for all elements."""
    x, y = context.operands[0], context.results[0]
    given = _single(op, op.output, y.shape) if op.output.dtype in TYPES else None
    if x is None or given is None:
        return None
    return conversions.to_nearest(conversions.KINDS[op.output.dtype], x, y, *given)


@native(Dequantize, *TYPES)
def build_dequantize(op: Dequantize, context: Context) -> NativeStep | None:
    """One scale for all elements."""
    x, y = context.operands[0], context.results[0]
    given = _single(op, op.input, y.shape)
    if x is None or given is None:
        return None
    return conversions.to_floats(conversions.KINDS[op.input.dtype], x, y, *given)


def _single(op: Op, value: Value, shape: tuple[int, ...]) -> tuple[float, int] | None:
    """Scale and zero point of a value that has one of each; None where the reference says more."""
    try:
        scale, zero_point = parameters(op, value, shape)
    except LucioleError:  # raised again when the operator runs
        return None
    if scale.size != 1 or abs(int(zero_point.flat[0])) > LARGEST_ZERO_POINT:
        return None
    return float(scale.flat[0]), int(zero_point.flat[0])
