"""CONV_2D kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops.conv_2d import Conv2D, check_groups
from luciole.kernels.activation import activate
from luciole.kernels.float_layer import Geometry, Layer, fits
from luciole.kernels.hybrid import one_scale, quantize_rows, weight_scale
from luciole.kernels.hybrid_layer import MOST_PRODUCTS, HybridLayer, Side
from luciole.kernels.registry import Context, NativeStep, native, reference
from luciole.kernels.windows import patches

HYBRID = (
    (TensorType.FLOAT32, TensorType.INT8),
    (TensorType.FLOAT32, TensorType.INT8, TensorType.FLOAT32),
)
"""Float images, int8 weights, float bias."""


@reference(Conv2D, TensorType.FLOAT32)
def conv_2d(op: Conv2D, x: Array, filter: Array, bias: Array | None) -> Array:
    """Sum over each window, group by group, in float32."""
    y = _sums(op, x, filter)
    return activate(y if bias is None else y + bias.reshape(-1), op.activation)


@reference(Conv2D, *HYBRID)
def conv_2d_hybrid(op: Conv2D, x: Array, filter: Array, bias: Array | None) -> Array:
    """int8 weights under float activations: each image is quantized, sums are integers, as in
    TFLite.
    """
    quantized, scales = quantize_rows(x)
    sums = _sums(op, quantized, filter.astype(np.float64))  # exact: below 2^53
    factors = scales * weight_scale(op.filter)
    y = sums.astype(np.float32) * factors.reshape(-1, 1, 1, 1)
    return activate(y if bias is None else y + bias.reshape(-1), op.activation)


def _sums(op: Conv2D, x: Array, filter: Array) -> Array:
    """The products of every window with every filter: [n, out_h, out_w, o]."""
    o, kh, kw, depth = filter.shape
    check_groups(x.shape[3], depth, o)
    stride, dilation = (op.stride_h, op.stride_w), (op.dilation_h_factor, op.dilation_w_factor)
    windows = patches(x, (kh, kw), stride, op.padding, dilation)
    groups = x.shape[3] // depth
    n, h, w = windows.shape[:3]
    columns = windows.reshape(n, h, w, groups, depth, kh, kw)
    weights = filter.reshape(groups, o // groups, kh, kw, depth).transpose(0, 4, 2, 3, 1)
    parts = [np.tensordot(columns[:, :, :, g], weights[g], axes=3) for g in range(groups)]
    return np.concatenate(parts, axis=-1)


@native(Conv2D, TensorType.FLOAT32)
def build(op: Conv2D, context: Context) -> NativeStep | None:
    """Tiles of pixels times blocks of outputs, see ``float_layer``."""
    x, filter, bias = (*context.operands, None)[:3]
    (y,) = context.results
    if x is None or filter is None or not fits(op.activation, x, y, *op.operands[1:]):
        return None
    o, kh, kw, depth = filter.shape
    stride, dilation = (op.stride_h, op.stride_w), (op.dilation_h_factor, op.dilation_w_factor)
    geometry = Geometry.of(x.shape, (kh, kw), stride, dilation, op.padding)
    groups = x.shape[3] // depth
    weights = filter.reshape(groups, o // groups, kh * kw, depth)
    return Layer(geometry, op.activation, x, y).convolution(weights, bias)


@native(Conv2D, *HYBRID)
def build_hybrid(op: Conv2D, context: Context) -> NativeStep | None:
    """Quantized images, then tiles of pixels times blocks of outputs, see ``hybrid_layer``."""
    x, filter, bias = (*context.operands, None)[:3]
    (y,), scale = context.results, one_scale(op.filter)
    if (
        x is None
        or filter is None
        or scale is None
        or not fits(op.activation, x, y, *op.operands[1:])
    ):
        return None
    o, kh, kw, depth = filter.shape
    if kh * kw * depth > MOST_PRODUCTS:
        return None
    _, h, w, channels = x.shape
    groups = channels // depth
    rows = Side.of(h, kh, op.stride_h, op.dilation_h_factor, op.padding)
    columns = Side.of(w, kw, op.stride_w, op.dilation_w_factor, op.padding)
    layer = HybridLayer(rows, columns, op.activation, x, y, scale)
    return layer.convolution(filter.reshape(groups, o // groups, kh, kw, depth), bias)
