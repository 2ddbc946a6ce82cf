"""Convolutions and their transposes; ONNX wants channels first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from luciole.exporters.onnx.building import Building, ints_of
from luciole.exporters.onnx.errors import RefusedError
from luciole.exporters.onnx.nodes import Term
from luciole.exporters.onnx.operators.activations import activated
from luciole.exporters.onnx.rules import rule
from luciole.ir import Value
from luciole.ir.analysis.computed_extents import Grown, computed_extents
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.conv_3d import Conv3D
from luciole.ir.ops.conv_3d_transpose import Conv3DTranspose
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.transpose_conv import TransposeConv
from luciole.ir.rules import padding_before, window
from luciole.schema.enums import Padding

Sides = Sequence[int]


def padded(
    shape: Sequence[int | None], kernel: Sides, strides: Sides, dilations: Sides, padding: Padding
) -> dict[str, object]:
    """Name the attributes of a window over the pixels of [n, ..., c]: padding in numbers where the
    extents are known.
    """
    pixels = list(shape[1:-1])
    options: dict[str, object] = {"strides": list(strides)}
    if any(d != 1 for d in dilations):
        options["dilations"] = list(dilations)
    if padding == Padding.VALID:
        return options
    if None in pixels:
        return options | {"auto_pad": "SAME_UPPER"}
    sides = [
        _both(n or 0, size, stride, dilation, padding)
        for n, size, stride, dilation in zip(pixels, kernel, strides, dilations, strict=True)
    ]
    pads = [before for before, _ in sides] + [after for _, after in sides]
    return options | ({"pads": pads} if any(pads) else {})


def _both(n: int, kernel: int, stride: int, dilation: int, padding: Padding) -> tuple[int, int]:
    before = padding_before(n, kernel, stride, dilation, padding)
    count = window(n, kernel, stride, dilation, padding) or 0
    reach = (count - 1) * stride + (kernel - 1) * dilation + 1
    return before, max(reach - n - before, 0)


def bias_of(k: Building, bias: Value | None) -> Term | None:
    """Find a bias [o], None where there is none."""
    if bias is None:
        return None
    return k.of(bias) if len(bias.shape) == 1 else k.reshape(k.of(bias), -1)


def _known(filter: Value) -> tuple[int, ...]:
    if None in filter.shape:
        raise RefusedError("the filter's shape is not known")
    return filter.dims


@rule(Conv2D)
def conv_2d(k: Building, op: Conv2D) -> None:
    """Make groups of as many input channels as the filter has."""
    _, kh, kw, depth = _known(op.filter)
    channels = op.input.shape[3]
    group = 1 if channels is None else channels // max(depth, 1)
    _convolution(k, op, (3, 1, 2), (kh, kw), group)


def _convolution(
    k: Building, op: Conv2D | DepthwiseConv2D, behind: Sides, kernel: Sides, group: int
) -> None:
    """Write a convolution; ``behind`` are the filter's axes behind the outputs'."""
    outputs = {1, 2, 3, 0}.difference(behind).pop()
    strides, dilations = (
        (op.stride_h, op.stride_w),
        (op.dilation_h_factor, op.dilation_w_factor),
    )
    options = padded(op.input.shape, kernel, strides, dilations, op.padding)
    options |= {"kernel_shape": list(kernel)} | ({"group": group} if group > 1 else {})
    filter = k.weights(op.filter, (outputs, *behind))
    y = k.add("Conv", k.channels_first(op.input), filter, bias_of(k, op.bias), **options)
    k.put_first(op.output, activated(k, y, op.activation))


@rule(DepthwiseConv2D)
def depthwise_conv_2d(k: Building, op: DepthwiseConv2D) -> None:
    """Make a group for each input channel: filter [1, h, w, c m] as [c m, 1, h, w]."""
    _, kh, kw, outputs = _known(op.filter)
    channels = op.input.shape[3]
    group = outputs // max(op.depth_multiplier, 1) if channels is None else channels
    _convolution(k, op, (0, 1, 2), (kh, kw), group)


@rule(Conv3D)
def conv_3d(k: Building, op: Conv3D) -> None:
    """Filter [d, h, w, c, o] as [o, c, d, h, w]."""
    kernel = _known(op.filter)[:3]
    dilations = (op.dilation_d_factor, op.dilation_h_factor, op.dilation_w_factor)
    strides = (op.stride_d, op.stride_h, op.stride_w)
    options = padded(op.input.shape, kernel, strides, dilations, op.padding)
    filter = k.weights(op.filter, (4, 3, 0, 1, 2))
    group = (op.input.shape[4] or 0) // max(op.filter.dims[3], 1)
    options |= {"group": group} if group > 1 else {}
    y = k.add("Conv", k.channels_first(op.input), filter, bias_of(k, op.bias), **options)
    k.put_first(op.output, activated(k, y, op.activation))


def _turned_around(
    extents: Sides, result_extents: Sides, kernel: Sides, strides: Sides, dilations: Sides
) -> dict[str, object]:
    """Return the attributes of a transposed convolution that has the result's extents: pixels
    beyond them are cut off, half of them before, and missing ones are added behind.
    """
    over = [
        (n - 1) * s + (size - 1) * d + 1 - to
        for n, to, size, s, d in zip(
            extents, result_extents, kernel, strides, dilations, strict=True
        )
    ]
    before = [max(n, 0) // 2 for n in over]
    after = [max(n, 0) - b for n, b in zip(over, before, strict=True)]
    options: dict[str, object] = {"strides": list(strides), "dilations": list(dilations)}
    options |= {"pads": before + after}
    missing = [max(-n, 0) for n in over]
    return options | ({"output_padding": missing} if any(missing) else {})


def _pixels(value: Value) -> list[int]:
    pixels = [n for n in value.shape[1:-1] if n is not None]
    if len(pixels) != len(value.shape) - 2:
        raise RefusedError(f"the extents of {value.name!r} are not known")
    return pixels


def _sides(op: TransposeConv, strides: Sides) -> Iterator[tuple[int, int]]:
    """Yield extents of the data and of the result; where both are open, those of data of one pixel,
    if one more means a stride more of the result: what is cut off is then the same for any.
    """
    data, sizes = op.out_backprop, computed_extents(op.input_sizes)
    for axis, stride in enumerate(strides, 1):
        extent, size = data.shape[axis], sizes[axis] if len(sizes) == 4 else None
        if size is not None and size.tensor is None and extent is not None:
            yield extent, size.offset
        elif size is not None and size == Grown(size.offset, stride, data, axis):
            yield 1, stride + size.offset
        elif op.input_sizes.is_constant:
            raise RefusedError(f"the extents of {data.name!r} are not known")
        else:
            raise RefusedError("input_sizes is computed, ONNX needs a constant")


@rule(TransposeConv)
def transpose_conv(k: Building, op: TransposeConv) -> None:
    """Filter [o, h, w, c] as [c, o, h, w]."""
    strides = (op.stride_h, op.stride_w)
    extents, sizes = zip(*_sides(op, strides), strict=True)
    kernel = _known(op.filter)[1:3]
    options = _turned_around(extents, sizes, kernel, strides, (1, 1))
    filter, x = k.weights(op.filter, (3, 0, 1, 2)), k.channels_first(op.out_backprop)
    y = k.add("ConvTranspose", x, filter, bias_of(k, op.bias), **options)
    k.put_first(op.output, activated(k, y, op.activation))


@rule(Conv3DTranspose)
def conv_3d_transpose(k: Building, op: Conv3DTranspose) -> None:
    """Filter [d, h, w, o, c] as [c, o, d, h, w]."""
    extents = ints_of(op.output_shape, "output_shape")[1:-1]
    strides = (op.stride_d, op.stride_h, op.stride_w)
    dilations = (op.dilation_d_factor, op.dilation_h_factor, op.dilation_w_factor)
    options = _turned_around(_pixels(op.input), extents, _known(op.filter)[:3], strides, dilations)
    filter = k.weights(op.filter, (4, 3, 0, 1, 2))
    y = k.add("ConvTranspose", k.channels_first(op.input), filter, bias_of(k, op.bias), **options)
    k.put_first(op.output, activated(k, y, op.activation))
