"""TRANSPOSE_CONV kernels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array, TensorType, Value
from luciole.ir.ops.transpose_conv import TransposeConv, check_sizes
from luciole.ir.rules import agree, integers, padding_before
from luciole.ir.value import element_count
from luciole.kernels.arrays.fused_activation import activate
from luciole.kernels.core.contract import Built, Context, NativeStep, Signature
from luciole.kernels.core.limits import room
from luciole.kernels.core.reasons import Declined, accepted
from luciole.kernels.core.registry import native, reads, reference
from luciole.kernels.layers.floats.layer import Arrays, FloatLayer, Geometry, misfit
from luciole.kernels.layers.geometry.spans import Axis
from luciole.kernels.layers.int8.layer import IntegerLayer
from luciole.kernels.layers.int8.phases import Phase
from luciole.kernels.layers.int8.phases import phases as byte_phases
from luciole.kernels.layers.int8.rescale import BYTES, SHORTS, SIGNATURES, Rescaling, centred
from luciole.kernels.layers.int16.layer import ShortLayer, way_of_convolution
from luciole.kernels.portable.calls import CCall, Field, PortableContext, portable
from luciole.kernels.portable.images import cut_off
from luciole.kernels.portable.integers import INT8S, INT16S, UINT8S, centred_in_c, rescaled
from luciole.kernels.portable.packed import with_packed_weights
from luciole.schema.enums import ActivationFunctionType, Padding


def _filter_first(signatures: Iterable[Signature]) -> tuple[Signature, ...]:
    """Turn element types of data, filter and bias (or none) around: filters come first here."""
    return tuple(s if len(s) == 1 else (s[1], s[0], *s[2:]) for s in signatures)


INTEGERS = _filter_first(SIGNATURES)


@reference(TransposeConv, TensorType.FLOAT32)
def transpose_conv(
    op: TransposeConv, input_sizes: Array, filter: Array, x: Array, bias: Array | None
) -> Array:
    """Sum all windows that reach a place, in float32."""
    y = _sums(op, input_sizes, filter, x)
    return activate(y if bias is None else y + bias.reshape(-1), op.activation)


def _sums(op: TransposeConv, input_sizes: Array, filter: Array, x: Array) -> Array:
    """Add up all windows, for a result of the given extents."""
    sizes = check_sizes(integers(input_sizes, "input_sizes", 4), x.shape[0], filter.shape[0])
    return window_sums(x, filter, sizes, (op.stride_h, op.stride_w), op.padding)


def window_sums(
    x: Array, filter: Array, sizes: Sequence[int], stride: tuple[int, int], padding: Padding
) -> Array:
    """Add up the filter's taps on a canvas large enough for all, and cut the result of these
    ``sizes`` out of it.
    """
    agree("input channels", filter.shape[3], x.shape[3], "filter", "the data")
    top, left = (
        padding_before(size, k, s, 1, padding)
        for size, k, s in zip(sizes[1:3], filter.shape[1:3], stride, strict=True)
    )
    canvas = _scatter(x, filter, stride, (top + sizes[1], left + sizes[2]))
    return canvas[:, top : top + sizes[1], left : left + sizes[2]].copy()


@reference(TransposeConv, *INTEGERS)
def transpose_conv_integer(
    op: TransposeConv, input_sizes: Array, filter: Array, x: Array, bias: Array | None
) -> Array:
    """Sum all windows that reach a place, of quantized data; filters and results are quantized,
    sums are integers.
    """
    to = _rescaling(op)
    data, weights = centred(x, to.input_zero), to.centred_weights(filter, 0)
    bias_type = op.quantized_bias_type if op.bias is None else op.bias.dtype
    return to.convolved(_sums(op, input_sizes, weights, data), bias, bias_type)


@reads(TransposeConv, *INTEGERS)
def _rescaling(op: TransposeConv) -> Rescaling:
    return Rescaling.of_convolution(op.out_backprop, op.filter, op.output, 0, op.activation)


def _scatter(x: Array, filter: Array, stride: tuple[int, int], least: tuple[int, int]) -> Array:
    """Sum all windows, unpadded; at least as large as ``least``."""
    (n, h, w, _), (o, kh, kw, _), (sh, sw) = x.shape, filter.shape, stride
    shape = (n, max(h * sh + kh, least[0]), max(w * sw + kw, least[1]), o)
    room(element_count(shape) * x.itemsize, "the sums of all windows")
    canvas = np.zeros(shape, x.dtype)
    for i in range(kh):
        for j in range(kw):
            canvas[:, i : i + h * sh : sh, j : j + w * sw : sw] += x @ filter[:, i, j].T
    return canvas


def _arrays(op: TransposeConv, context: Context) -> Arrays | Declined | None:
    """Return the arrays of an operator, Declined where no kernel can be built, see ``misfit``."""
    _, filter, x, bias = (*context.operands, None)[:4]
    (y,) = context.results
    if filter is None or x is None:
        return None
    declined = misfit(op.activation, x, y, op.input_sizes, op.filter, op.bias)
    return declined or Arrays(x, filter, bias, y)


@native(TransposeConv, TensorType.FLOAT32)
def build(op: TransposeConv, context: Context) -> Built:
    """Run phases as convolutions, see ``phases``."""
    arrays = _arrays(op, context)
    if arrays is None or isinstance(arrays, Declined):
        return arrays
    return phases(arrays, (op.stride_h, op.stride_w), op.padding, op.activation)


def _cut(
    op: TransposeConv, context: Context
) -> tuple[Arrays, Rescaling, list[Phase]] | Declined | None:
    """Return the arrays of an operator on integers, how its sums are rescaled, and its phases;
    Declined or None where no kernel can be built.
    """
    arrays, to = _arrays(op, context), accepted(_rescaling, op)
    if arrays is None or isinstance(arrays, Declined):
        return arrays
    if isinstance(to, Declined):
        return to
    stride = (op.stride_h, op.stride_w)
    return arrays, to, byte_phases(arrays.x, arrays.weights, arrays.y, stride, op.padding)


@native(TransposeConv, *_filter_first(BYTES))
def build_integer(op: TransposeConv, context: Context) -> Built:
    """Copy the images with padding, then run phases as convolutions of bytes."""
    known = _cut(op, context)
    if known is None or isinstance(known, Declined):
        return known
    (x, filter, bias, y), to, cut = known
    layer = IntegerLayer(cut[0].rows, cut[0].columns, x, y, to=to)
    return layer.in_phases(cut, filter[None], bias)


@native(TransposeConv, *_filter_first(SHORTS))
def build_short(op: TransposeConv, context: Context) -> Built:
    """Copy images of 16 bits with padding, then run phases as convolutions."""
    known = _cut(op, context)
    if known is None or isinstance(known, Declined):
        return known
    (x, filter, bias, y), to, cut = known
    bias_type = op.quantized_bias_type if op.bias is None else op.bias.dtype
    sides, scaling = (cut[0].rows, cut[0].columns), way_of_convolution(to, bias_type)
    return ShortLayer.of(sides, x, y, to, scaling).in_phases(cut, filter[None], bias)


def phases(
    arrays: Arrays,
    stride: tuple[int, int],
    padding: Padding,
    activation: ActivationFunctionType,
) -> NativeStep:
    """Run phases as convolutions (polyphase decomposition): results whose positions leave the same
    rest when divided by the strides (a phase) are a convolution with every stride-th tap,
    backwards.
    """
    x, filter, bias, y = arrays
    kernel = filter.shape[1:3]
    rows, columns = (
        _phases(size, outputs, k, s, padding_before(outputs, k, s, 1, padding))
        for size, outputs, k, s in zip(x.shape[1:3], y.shape[1:3], kernel, stride, strict=True)
    )
    weights = np.zeros((len(filter), rows.kernel, columns.kernel, x.shape[3]), np.float32)
    down, across = (_taps(k, s) for k, s in zip(kernel, stride, strict=True))
    weights[:, down[0][:, None], across[0]] = filter[:, down[1][:, None], across[1]]
    geometry = Geometry(len(x), x.shape[3], rows, columns)
    flat = weights.reshape(1, len(filter), -1, x.shape[3])
    return FloatLayer(geometry, activation, x, y).convolution(flat, bias)


def _taps(kernel: int, stride: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where taps stand phase by phase, and which these are. A phase has room for ceil(kernel
    / stride) of them.
    """
    taps = np.arange(kernel)
    phase, number = taps % stride, taps // stride
    last = (kernel - 1 - phase) // stride
    return phase * -(-kernel // stride) + last - number, taps


def _phases(size: int, outputs: int, kernel: int, stride: int, before: int) -> Axis:
    """Return for each result the taps that meet an input, numbered as ``_taps`` places them."""
    positions = np.arange(outputs) + before
    phase, room = positions % stride, -(-kernel // stride)
    taps = np.maximum((kernel - 1 - phase) // stride + 1, 0)
    origin = positions // stride - (taps - 1)
    skipped = np.maximum(-origin, 0)
    count = np.maximum(np.minimum(taps, size - origin) - skipped, 0)
    start = np.where(count > 0, origin + skipped, 0)
    first = phase * room + np.where(count > 0, skipped, 0)
    return Axis(size, stride * room, stride, 1, first, count, start)


def spreading(
    x: Value, filter: Value, y: Value, stride: tuple[int, int], padding: Padding
) -> dict[str, Field]:
    """Write the extents of images and of the windows that they are spread to, for C."""
    outputs, *kernel, channels = filter.dims
    top, left = (
        padding_before(size, k, s, 1, padding)
        for size, k, s in zip(y.dims[1:3], kernel, stride, strict=True)
    )
    held: dict[str, Field] = {"batches": x.dims[0], "channels": channels, "outputs": outputs}
    held |= {"padding_top": top, "padding_left": left}
    pairs = {"input": x.dims[1:3], "output": y.dims[1:3], "kernel": kernel, "stride": stride}
    for name, (height, width) in pairs.items():
        held |= {f"{name}_height": height, f"{name}_width": width}
    return {"spreading": held}


def _spreading(op: TransposeConv) -> dict[str, Field]:
    strides = op.stride_h, op.stride_w
    return spreading(op.out_backprop, op.filter, op.results[0], strides, op.padding)


@portable(TransposeConv, TensorType.FLOAT32)
def float_in_c(op: TransposeConv, context: PortableContext) -> list[CCall]:
    """Call the transposed convolution of floats."""
    tables: dict[str, Field] = {"weights": context.constant(op.filter)}
    fields = _spreading(op) | tables | cut_off(op.activation)
    fields |= {"bias": context.optional(op.bias)}
    return [CCall("luc_transpose_conv_float", fields, (op.out_backprop,), op.results)]


@portable(TransposeConv, *INT8S, *UINT8S, *_filter_first(INT16S))
def integer_in_c(op: TransposeConv, context: PortableContext) -> list[CCall]:
    """Call the transposed convolution of integers."""
    weights, bias = context.constant(op.filter), context.optional(op.bias)
    to = _rescaling(op)
    wide = to.is_wide(op.quantized_bias_type if op.bias is None else op.bias.dtype)
    kind, scaled = rescaled(to, weights, bias, (1, 2, 3), wide=wide)
    fields = _spreading(op) | scaled | {"weights": centred_in_c(to, weights, 0)}
    call = CCall(f"luc_transpose_conv_{kind}", fields, (op.out_backprop,), op.results)
    return [with_packed_weights(call, weights, context, most=weights.size)]
