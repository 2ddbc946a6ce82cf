"""DEPTHWISE_CONV_2D kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D, check_multiple
from luciole.kernels.activation import activate
from luciole.kernels.float_layer import Geometry, Layer, fits
from luciole.kernels.registry import Context, NativeStep, native, reference
from luciole.kernels.windows import patches


@reference(DepthwiseConv2D, TensorType.FLOAT32)
def depthwise_conv_2d(op: DepthwiseConv2D, x: Array, filter: Array, bias: Array | None) -> Array:
    """Sum over each window of a channel, once for each of its filters, in float32."""
    _, kh, kw, outputs = filter.shape
    channels = x.shape[3]
    check_multiple(channels, outputs)
    stride, dilation = (op.stride_h, op.stride_w), (op.dilation_h_factor, op.dilation_w_factor)
    windows = patches(x, (kh, kw), stride, op.padding, dilation)
    weights = filter.reshape(kh, kw, channels, outputs // channels)
    y = np.einsum("nhwcij,ijcm->nhwcm", windows, weights).reshape(*windows.shape[:3], outputs)
    return activate(y if bias is None else y + bias.reshape(-1), op.activation)


@native(DepthwiseConv2D, TensorType.FLOAT32)
def build(op: DepthwiseConv2D, context: Context) -> NativeStep | None:
    """Tiles of pixels times blocks of channels; where a channel has several filters it is a group
    of a convolution.
    """
    x, filter, bias = (*context.operands, None)[:3]
    (y,) = context.results
    if x is None or filter is None or not fits(op.activation, x, y, *op.operands[1:]):
        return None
    _, kh, kw, outputs = filter.shape
    stride, dilation = (op.stride_h, op.stride_w), (op.dilation_h_factor, op.dilation_w_factor)
    geometry = Geometry.of(x.shape, (kh, kw), stride, dilation, op.padding)
    weights = filter.reshape(kh * kw, outputs).T
    layer, channels = Layer(geometry, op.activation, x, y), x.shape[3]
    if outputs == channels > 1:
        return layer.depthwise(weights, bias)
    grouped = weights.reshape(channels, outputs // channels, kh * kw, 1)
    return layer.convolution(grouped, bias)
