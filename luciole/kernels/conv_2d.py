"""CONV_2D kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.dtypes import NUMPY
from luciole.ir.ops.conv_2d import Conv2D, check_groups
from luciole.ir.value import element_count
from luciole.kernels.arrays.fused_activation import activate
from luciole.kernels.core.contract import Built, Context
from luciole.kernels.core.reasons import Declined, accepted
from luciole.kernels.core.registry import native, reads, reference
from luciole.kernels.layers.floats.layer import FloatLayer, Geometry, arrays_of
from luciole.kernels.layers.geometry.windows import patches
from luciole.kernels.layers.int8 import hybrid
from luciole.kernels.layers.int8.byte_layer import sides
from luciole.kernels.layers.int8.hybrid import of_rows, one_scale, weight_scale, weight_scales
from luciole.kernels.layers.int8.hybrid_layer import WIDE_SUMS, HybridLayer, may_overflow
from luciole.kernels.layers.int8.layer import IntegerLayer
from luciole.kernels.layers.int8.rescale import BYTES, SHORTS, SIGNATURES, Rescaling, centred
from luciole.kernels.layers.int16.layer import ShortLayer, way_of_convolution
from luciole.kernels.portable.calls import CCall, Field, PortableContext, portable
from luciole.kernels.portable.hybrid import BY_BYTES, hybrid_calls
from luciole.kernels.portable.images import cut_off, windows_of
from luciole.kernels.portable.integers import (
    INT8_BY_4,
    INT8S,
    INT16S,
    UINT8S,
    rescaled,
    with_zeros,
)
from luciole.kernels.portable.packed import BLOCK, with_packed_weights


@reference(Conv2D, TensorType.FLOAT32)
def conv_2d(op: Conv2D, x: Array, filter: Array, bias: Array | None) -> Array:
    """Sum over each window, group by group, in float32."""
    y = _sums(op, x, filter)
    return activate(y if bias is None else y + bias.reshape(-1), op.activation)


@reference(Conv2D, *hybrid.SIGNATURES)
def conv_2d_hybrid(op: Conv2D, x: Array, filter: Array, bias: Array | None) -> Array:
    """Convolve float images, quantized one by one, with integer weights, as TFLite does; sums are
    integers. Images get a zero point where filters have several scales or groups.
    """
    filter_scales = weight_scales(op.filter, 0)
    alone = _alone(op, x, filter)
    quantized, scales = of_rows(x, asymmetric=alone is None)
    weights = hybrid.signed(filter).astype(np.float64)
    sums = _sums(op, quantized, weights).astype(np.float32)  # exact below 2^53
    images = scales.reshape(-1, 1, 1, 1)
    y = sums * filter_scales * images if alone is None else sums * (images * alone)
    return activate(y if bias is None else y + bias.reshape(-1), op.activation)


def _alone(op: Conv2D, x: Array, filter: Array) -> np.float32 | None:
    """Return the one scale of all filters, None where there are several, or groups.

    Raises UnsupportedError where filters that are called UINT8 have several: TFLite reads one.
    """
    alike = x.shape[3] == filter.shape[3]
    if op.filter.dtype == TensorType.UINT8:
        return weight_scale(op.filter, alike=True)
    return one_scale(op.filter, alike=alike)


@reference(Conv2D, *SIGNATURES)
def conv_2d_integer(op: Conv2D, x: Array, filter: Array, bias: Array | None) -> Array:
    """Convolve quantized images; filters and results are quantized, sums are integers. Padding
    stands for 0.
    """
    to = _rescaling(op)
    sums = _sums(op, centred(x, to.input_zero), to.centred_weights(filter, 0))
    return to.convolved(sums, bias, _bias_type(op))


def _bias_type(op: Conv2D) -> TensorType:
    """Return the integers that sums are."""
    return op.quantized_bias_type if op.bias is None else op.bias.dtype


@reads(Conv2D, *SIGNATURES)
def _rescaling(op: Conv2D) -> Rescaling:
    return Rescaling.of_convolution(op.input, op.filter, op.output, 0, op.activation)


def _sums(op: Conv2D, x: Array, filter: Array) -> Array:
    """Add up the products of every window with every filter: [n, out_h, out_w, o]."""
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
def build(op: Conv2D, context: Context) -> Built:
    """Compute tiles of pixels times blocks of outputs, see ``layers.floats.layer``."""
    arrays = arrays_of(op, context)
    if isinstance(arrays, Declined):
        return arrays
    x, filter, bias, y = arrays
    o, kh, kw, depth = filter.shape
    stride, dilation = (op.stride_h, op.stride_w), (op.dilation_h_factor, op.dilation_w_factor)
    geometry = Geometry.of(x.shape, (kh, kw), stride, dilation, op.padding)
    groups = x.shape[3] // depth
    weights = filter.reshape(groups, o // groups, kh * kw, depth)
    return FloatLayer(geometry, op.activation, x, y).convolution(weights, bias)


@native(Conv2D, *hybrid.SIGNATURES)
def build_hybrid(op: Conv2D, context: Context) -> Built:
    """Quantize the images, then compute tiles of pixels times blocks of outputs, see
    ``hybrid_layer``.
    """
    arrays, scales = arrays_of(op, context), accepted(weight_scales, op.filter, 0)
    if isinstance(arrays, Declined):
        return arrays
    if isinstance(scales, Declined):
        return scales
    x, filter, bias, y = arrays
    alone = accepted(_alone, op, x, filter)
    if isinstance(alone, Declined):
        return alone
    several = alone is None
    if may_overflow(filter[0].size, asymmetric=several):
        return WIDE_SUMS
    layer = HybridLayer(
        *sides(op, x, filter),
        x,
        y,
        activation=op.activation,
        scales=scales,
        asymmetric=several,
        in_turn=several,
    )
    return layer.convolution(_grouped(x, hybrid.signed(filter)), bias)


@native(Conv2D, *BYTES)
def build_integer(op: Conv2D, context: Context) -> Built:
    """Copy the images with padding, then compute tiles of pixels times blocks of outputs, see
    ``layers.int8.layer``.
    """
    arrays, to = arrays_of(op, context), accepted(_rescaling, op)
    if isinstance(arrays, Declined):
        return arrays
    if isinstance(to, Declined):
        return to
    x, filter, bias, y = arrays
    layer = IntegerLayer(*sides(op, x, filter), x, y, to=to)
    return layer.convolution(_grouped(x, filter), bias, exact=False)


@native(Conv2D, *SHORTS)
def build_short(op: Conv2D, context: Context) -> Built:
    """Copy images of 16 bits with padding, then compute tiles, see ``layers.int16.layer``."""
    arrays, to = arrays_of(op, context), accepted(_rescaling, op)
    if isinstance(arrays, Declined):
        return arrays
    if isinstance(to, Declined):
        return to
    x, filter, bias, y = arrays
    scaling = way_of_convolution(to, _bias_type(op))
    layer = ShortLayer.of(sides(op, x, filter), x, y, to, scaling)
    return layer.convolution(_grouped(x, filter), bias)


def _grouped(x: Array, filter: Array) -> Array:
    """Split filters into groups of channels: [groups, o, kernel height, kernel width, depth]."""
    o, kh, kw, depth = filter.shape
    groups = x.shape[3] // depth
    return filter.reshape(groups, o // groups, kh, kw, depth)


def _fields(op: Conv2D) -> dict[str, Field]:
    """Write a convolution's extents for C."""
    o, kh, kw, depth = op.filter.dims
    check_groups(op.input.dims[3], depth, o)
    stride, dilation = (op.stride_h, op.stride_w), (op.dilation_h_factor, op.dilation_w_factor)
    windows = windows_of(op.input, op.results[0], (kh, kw), stride, op.padding, dilation)
    return {**windows, "depth": depth}


@portable(Conv2D, *INT8S, *INT8_BY_4, *INT16S, *UINT8S)
def integer_in_c(op: Conv2D, context: PortableContext) -> list[CCall]:
    """Call the convolution of integers."""
    weights, bias = context.constant(op.filter), context.optional(op.bias)
    to = _rescaling(op)
    kind, scaled = rescaled(to, weights, bias, (1, 2, 3), wide=to.is_wide(_bias_type(op)))
    fours = -(-element_count(op.filter.dims[1:]) // 4)
    gathered = 4 * fours * NUMPY[op.input.dtype].itemsize if op.filter.dims[3] % 4 else 0
    scratch = 16 * fours + -(-gathered // 8) * 8
    fields = _fields(op) | scaled | with_zeros(to, weights, 0)
    call = CCall(f"luc_conv_2d_{kind}", fields, (op.input,), op.results, scratch)
    pixels = element_count(op.results[0].dims[:3])
    return [with_packed_weights(call, weights, context, most=BLOCK if pixels > 2 else 0)]


@portable(Conv2D, TensorType.FLOAT32)
def float_in_c(op: Conv2D, context: PortableContext) -> list[CCall]:
    """Call the convolution of floats."""
    tables: dict[str, Field] = {"weights": context.constant(op.filter)}
    fields = _fields(op) | tables | {"bias": context.optional(op.bias)} | cut_off(op.activation)
    return [CCall("luc_conv_2d_float", fields, (op.input,), op.results)]


@portable(Conv2D, *BY_BYTES)
def hybrid_in_c(op: Conv2D, context: PortableContext) -> list[CCall]:
    """Call the convolution of floats with weights of bytes."""
    filter, windows = context.constant(op.filter), _fields(op)
    alone = _alone(op, np.empty(op.input.dims), filter)
    return hybrid_calls(
        op.input,
        op.results[0],
        {"windows": windows["windows"]},
        element_count(op.input.dims[1:]),
        op.activation,
        context,
        weights=filter,
        scales=weight_scales(op.filter, 0) if alone is None else np.array([alone]),
        bias=context.optional(op.bias),
        asymmetric=alone is None,
        together=alone is not None,
    )
