"""DEPTHWISE_CONV_2D kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D, check_multiple
from luciole.ir.value import element_count
from luciole.kernels.arrays.fused_activation import activate
from luciole.kernels.core.contract import Built, Context
from luciole.kernels.core.reasons import Declined, accepted
from luciole.kernels.core.registry import native, reads, reference
from luciole.kernels.layers.floats.layer import FloatLayer, Geometry, arrays_of
from luciole.kernels.layers.geometry.windows import patches
from luciole.kernels.layers.int8 import hybrid
from luciole.kernels.layers.int8.byte_layer import sides
from luciole.kernels.layers.int8.depthwise import DepthwiseLayer
from luciole.kernels.layers.int8.hybrid_layer import (
    WIDE_SUMS,
    HybridDepthwise,
    HybridLayer,
    may_overflow,
)
from luciole.kernels.layers.int8.layer import IntegerLayer
from luciole.kernels.layers.int8.rescale import BYTES, SHORTS, SIGNATURES, Rescaling, centred
from luciole.kernels.layers.int16.layer import ShortDepthwise, ShortLayer, way_of_convolution
from luciole.kernels.portable.calls import CCall, Field, PortableContext, portable
from luciole.kernels.portable.hybrid import BY_BYTES, hybrid_calls
from luciole.kernels.portable.images import cut_off, windows_of
from luciole.kernels.portable.integers import (
    INT8_BY_4,
    INT8S,
    INT16S,
    UINT8S,
    centred_in_c,
    rescaled,
)
from luciole.kernels.portable.packed import with_packed_weights


@reference(DepthwiseConv2D, TensorType.FLOAT32)
def depthwise_conv_2d(op: DepthwiseConv2D, x: Array, filter: Array, bias: Array | None) -> Array:
    """Sum over each window of a channel, once for each of its filters, in float32."""
    y = _sums(op, x, filter)
    return activate(y if bias is None else y + bias.reshape(-1), op.activation)


@reference(DepthwiseConv2D, *SIGNATURES)
def depthwise_conv_2d_integer(
    op: DepthwiseConv2D, x: Array, filter: Array, bias: Array | None
) -> Array:
    """Convolve quantized images; filters and results are quantized, sums are integers. Padding
    stands for 0.
    """
    to = _rescaling(op)
    sums = _sums(op, centred(x, to.input_zero), to.centred_weights(filter, 3))
    return to.convolved(sums, bias, None if op.bias is None else op.bias.dtype)


@reference(DepthwiseConv2D, *hybrid.SIGNATURES)
def depthwise_conv_2d_hybrid(
    op: DepthwiseConv2D, x: Array, filter: Array, bias: Array | None
) -> Array:
    """Convolve float images, quantized one by one, with integer weights, as TFLite does; sums are
    integers.
    """
    quantized, scales = hybrid.of_rows(x, asymmetric=True)
    sums = _sums(op, quantized, hybrid.signed(filter).astype(np.float64)).astype(np.float32)
    y = sums * hybrid.weight_scales(op.filter, 3) * scales.reshape(-1, 1, 1, 1)
    return activate(y if bias is None else y + bias.reshape(-1), op.activation)


@reads(DepthwiseConv2D, *SIGNATURES)
def _rescaling(op: DepthwiseConv2D) -> Rescaling:
    return Rescaling.of_convolution(op.input, op.filter, op.output, 3, op.activation)


def _sums(op: DepthwiseConv2D, x: Array, filter: Array) -> Array:
    """Add up the products of every window with its channels' filters: [n, out_h, out_w, o]."""
    _, kh, kw, outputs = filter.shape
    channels = x.shape[3]
    check_multiple(channels, outputs)
    stride, dilation = (op.stride_h, op.stride_w), (op.dilation_h_factor, op.dilation_w_factor)
    windows = patches(x, (kh, kw), stride, op.padding, dilation)
    weights = filter.reshape(kh, kw, channels, outputs // channels)
    sums = np.einsum("nhwcij,ijcm->nhwcm", windows, weights)
    return np.asarray(sums).reshape(*windows.shape[:3], outputs)


@native(DepthwiseConv2D, TensorType.FLOAT32)
def build(op: DepthwiseConv2D, context: Context) -> Built:
    """Compute tiles of pixels times blocks of channels; where a channel has several filters it is a
    group of a convolution.
    """
    arrays = arrays_of(op, context)
    if isinstance(arrays, Declined):
        return arrays
    x, filter, bias, y = arrays
    _, kh, kw, outputs = filter.shape
    stride, dilation = (op.stride_h, op.stride_w), (op.dilation_h_factor, op.dilation_w_factor)
    geometry = Geometry.of(x.shape, (kh, kw), stride, dilation, op.padding)
    weights = filter.reshape(kh * kw, outputs).T
    layer, channels = FloatLayer(geometry, op.activation, x, y), x.shape[3]
    if outputs == channels > 1:
        return layer.depthwise(weights, bias)
    grouped = weights.reshape(channels, outputs // channels, kh * kw, 1)
    return layer.convolution(grouped, bias)


@native(DepthwiseConv2D, *hybrid.SIGNATURES)
def build_hybrid(op: DepthwiseConv2D, context: Context) -> Built:
    """Quantize the images, then compute tiles of pixels times rows of channels, see
    ``hybrid_layer``.
    """
    arrays, scales = arrays_of(op, context), accepted(hybrid.weight_scales, op.filter, 3)
    if isinstance(arrays, Declined):
        return arrays
    if isinstance(scales, Declined):
        return scales
    x, filter, bias, y = arrays
    (_, kh, kw, outputs), channels = filter.shape, x.shape[3]
    if may_overflow(kh * kw, asymmetric=True):
        return WIDE_SUMS
    both, weights = sides(op, x, filter), hybrid.signed(filter).reshape(kh * kw, outputs).T
    if outputs == channels > 1:
        alone = HybridDepthwise(*both, x, y, activation=op.activation, scales=scales)
        return alone.depthwise(weights, bias)
    layer = HybridLayer(
        *both, x, y, activation=op.activation, scales=scales, asymmetric=True, in_turn=True
    )
    return layer.convolution(weights.reshape(channels, outputs // channels, kh, kw, 1), bias)


@native(DepthwiseConv2D, *BYTES)
def build_integer(op: DepthwiseConv2D, context: Context) -> Built:
    """Copy the images with padding, then compute tiles of pixels times rows of channels, see
    ``layers.int8.depthwise``.
    """
    arrays, to = arrays_of(op, context), accepted(_rescaling, op)
    if isinstance(arrays, Declined):
        return arrays
    if isinstance(to, Declined):
        return to
    x, filter, bias, y = arrays
    (_, kh, kw, outputs), channels = filter.shape, x.shape[3]
    both, weights = sides(op, x, filter), filter.reshape(kh * kw, outputs).T
    if outputs == channels > 1:
        return DepthwiseLayer(*both, x, y, to=to).depthwise(weights, bias)
    grouped = weights.reshape(channels, outputs // channels, kh, kw, 1)
    layer = IntegerLayer(*both, x, y, to=to)
    return layer.convolution(grouped, bias, exact=False)


@native(DepthwiseConv2D, *SHORTS)
def build_short(op: DepthwiseConv2D, context: Context) -> Built:
    """Copy images of 16 bits with padding, then compute tiles, see ``layers.int16.layer``."""
    arrays, to = arrays_of(op, context), accepted(_rescaling, op)
    if isinstance(arrays, Declined):
        return arrays
    if isinstance(to, Declined):
        return to
    x, filter, bias, y = arrays
    (_, kh, kw, outputs), channels = filter.shape, x.shape[3]
    scaling = way_of_convolution(to, None if op.bias is None else op.bias.dtype)
    both, weights = sides(op, x, filter), np.moveaxis(filter[0], -1, 0)
    if outputs == channels > 1:
        return ShortDepthwise.of(both, x, y, to, scaling).depthwise(weights, bias)
    layer = ShortLayer.of(both, x, y, to, scaling)
    return layer.convolution(weights.reshape(channels, outputs // channels, kh, kw, 1), bias)


def _fields(op: DepthwiseConv2D) -> dict[str, Field]:
    """Write a convolution's extents for C."""
    _, kh, kw, outputs = op.filter.dims
    check_multiple(op.input.dims[3], outputs)
    stride, dilation = (op.stride_h, op.stride_w), (op.dilation_h_factor, op.dilation_w_factor)
    windows = windows_of(op.input, op.results[0], (kh, kw), stride, op.padding, dilation)
    return {**windows, "times": outputs // op.input.dims[3]}


@portable(DepthwiseConv2D, *INT8S, *INT8_BY_4, *INT16S, *UINT8S)
def integer_in_c(op: DepthwiseConv2D, context: PortableContext) -> list[CCall]:
    """Call the convolution of integers."""
    weights, bias = context.constant(op.filter), context.optional(op.bias)
    to = _rescaling(op)
    wide = to.is_wide(None if op.bias is None else op.bias.dtype)
    kind, scaled = rescaled(to, weights, bias, (0, 1, 2), wide=wide)
    fields = _fields(op) | scaled | {"weights": centred_in_c(to, weights, 3)}
    call = CCall(f"luc_depthwise_conv_2d_{kind}", fields, (op.input,), op.results)
    return [with_packed_weights(call, weights, context, axis=3, most=weights.size)]


@portable(DepthwiseConv2D, TensorType.FLOAT32)
def float_in_c(op: DepthwiseConv2D, context: PortableContext) -> list[CCall]:
    """Call the convolution of floats."""
    tables: dict[str, Field] = {"weights": context.constant(op.filter)}
    fields = _fields(op) | tables | {"bias": context.optional(op.bias)} | cut_off(op.activation)
    return [CCall("luc_depthwise_conv_2d_float", fields, (op.input,), op.results)]


@portable(DepthwiseConv2D, *BY_BYTES)
def hybrid_in_c(op: DepthwiseConv2D, context: PortableContext) -> list[CCall]:
    """Call the convolution of floats with weights of bytes, in groups of one channel."""
    filter = context.constant(op.filter)
    stride, dilation = (op.stride_h, op.stride_w), (op.dilation_h_factor, op.dilation_w_factor)
    kernel = filter.shape[1:3]
    return hybrid_calls(
        op.input,
        op.results[0],
        windows_of(op.input, op.results[0], kernel, stride, op.padding, dilation),
        element_count(op.input.dims[1:]),
        op.activation,
        context,
        weights=filter.transpose(3, 1, 2, 0),
        scales=hybrid.weight_scales(op.filter, 3),
        bias=context.optional(op.bias),
        asymmetric=True,
        together=False,
    )
