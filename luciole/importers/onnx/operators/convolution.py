"""Convolutions. ONNX has channels behind the batch, circle at the end: TRANSPOSE stand around."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from luciole.importers.onnx.building import Building
from luciole.importers.onnx.errors import RefusedError
from luciole.importers.onnx.node import Node
from luciole.importers.onnx.operators.control_flow import joined
from luciole.importers.onnx.operators.shape import extents, padded, with_axes, without_axes
from luciole.importers.onnx.rules import rule
from luciole.importers.onnx.windows import Windows, windows_of
from luciole.ir import Shape, TensorType, Value
from luciole.ir.ops.concatenation import Concatenation
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.conv_3d import Conv3D
from luciole.ir.ops.conv_3d_transpose import Conv3DTranspose
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.elementwise_binary import Add, Mul
from luciole.ir.ops.slice import Slice
from luciole.ir.ops.split_v import SplitV
from luciole.ir.ops.strided_slice import StridedSlice
from luciole.ir.ops.transpose_conv import TransposeConv
from luciole.ir.rules import padding_before, window
from luciole.schema.enums import Padding
from luciole.schema.printable import quoted


def last(k: Building, value: Value) -> Value:
    """Put channels behind the axes of an image."""
    rank = len(value.shape)
    return k.transpose(value, (0, *range(2, rank), 1))


def first(k: Building, value: Value) -> Value:
    """Put channels before the axes of an image."""
    rank = len(value.shape)
    return k.transpose(value, (0, rank - 1, *range(1, rank - 1)))


def lifted(k: Building, value: Value) -> Value:
    """Give a tensor with one axis besides batch and channels a second one, before it."""
    if len(value.shape) != 3:
        return value
    return with_axes(k, value, [2])


def lowered(k: Building, value: Value) -> Value:
    """Drop the axis that ``lifted`` adds."""
    return without_axes(k, value, [2])


@rule("Conv")
def conv(k: Building, node: Node) -> Value:
    """Convolve images of one to three axes."""
    x, w = node[0], node[1]
    windows = windows_of(node, x.shape, k.dims(w)[2:])
    return convolved(k, x, w, node.get(2), windows, node.integer("group", 1))


def convolved(
    k: Building, x: Value, w: Value, bias: Value | None, windows: Windows, groups: int
) -> Value:
    """Convolve images whose channels come first, with filters [outputs, channels, ...]."""
    if len(x.shape) == 3:
        flat = convolved(k, lifted(k, x), lifted(k, w), bias, windows.flat(), groups)
        return lowered(k, flat)
    if len(x.shape) not in (4, 5):
        raise RefusedError(f"a convolution of {len(x.shape) - 2} axes")
    channels, outputs = x.shape[1], k.dims(w)[0]
    if channels is None or groups < 1 or channels != k.dims(w)[1] * groups:
        raise RefusedError(f"filters {list(w.shape)} in {groups} groups for {channels} channels")
    bias = bias if bias is not None else k.constant(np.zeros(outputs, np.float32))
    image, dtype = last(k, x), x.dtype
    if dtype != TensorType.FLOAT32:
        image, w, bias = (k.cast(v, TensorType.FLOAT32) for v in (image, w, bias))
    image, padding = _padded(k, image, windows)
    if len(x.shape) == 5:
        result = _in_space(k, image, w, bias, windows, groups)
    elif groups == channels and groups > 1:
        result = _depthwise(k, image, w, bias, windows, padding)
    else:
        filters = k.transpose(w, (0, 2, 3, 1))
        result = k.make(Conv2D, (image, filters, bias), padding=padding, **_steps(windows))
    return k.cast(first(k, result), dtype)


def _padded(k: Building, image: Value, windows: Windows) -> tuple[Value, Padding]:
    if windows.axes == 2 and windows.pads.any() and windows.is_same(image.shape[1:-1]):
        return image, Padding.SAME
    if (windows.pads < 0).any():
        raise RefusedError("its padding is negative")
    return padded(k, image, windows.table(), k.like(image, 0)), Padding.VALID


def _steps(windows: Windows) -> dict[str, int]:
    """Read strides and dilations as attributes of circle's operators."""
    names = ("d", "h", "w")[-windows.axes :]
    steps = {f"stride_{n}": s for n, s in zip(names, windows.strides, strict=True)}
    far = zip(names, windows.dilations, strict=True)
    return steps | {f"dilation_{n}_factor": d for n, d in far}


def _depthwise(
    k: Building, image: Value, w: Value, bias: Value, windows: Windows, padding: Padding
) -> Value:
    outputs = k.dims(w)[0]
    multiplier = outputs // k.dims(w)[1] // int(image.shape[-1] or 1)
    filters = k.transpose(w, (1, 2, 3, 0))
    return k.make(
        DepthwiseConv2D,
        (image, filters, bias),
        padding=padding,
        depth_multiplier=multiplier,
        **_steps(windows),
    )


def _in_space(
    k: Building, image: Value, w: Value, bias: Value, windows: Windows, groups: int
) -> Value:
    """Convolve images of three axes, each group of channels on its own."""

    def convolve(part: Value, filters: Value, bias: Value | None) -> Value:
        order = k.transpose(filters, (2, 3, 4, 1, 0))
        return k.make(Conv3D, (part, order, bias), padding=Padding.VALID, **_steps(windows))

    return grouped(k, groups, (image, -1), (w, 0), bias, convolve)


def grouped(
    k: Building,
    groups: int,
    image: tuple[Value, int],
    w: tuple[Value, int],
    bias: Value | None,
    convolve: Callable[[Value, Value, Value | None], Value],
) -> Value:
    """Cut an image, filters and biases into groups, convolve each, and join the results' last
    axis.
    """
    if groups == 1:
        return convolve(image[0], w[0], bias)
    images, filters = (_parts(k, value, axis, groups) for value, axis in (image, w))
    biases = [None] * groups if bias is None else _parts(k, bias, 0, groups)
    results = [convolve(*part) for part in zip(images, filters, biases, strict=True)]
    return k.add(Concatenation(tuple(results), axis=len(results[0].shape) - 1))


def _parts(k: Building, value: Value, axis: int, count: int) -> list[Value]:
    axis = axis % len(value.shape)
    extent = value.shape[axis]
    if extent is None or extent % count:
        raise RefusedError(f"{extent} channels make no {count} groups")
    sizes = k.constant(np.full(count, extent // count, np.int32))
    return k.several(SplitV(value, sizes, k.constant(np.int32(axis)), num_splits=count))


@rule("ConvTranspose")
def conv_transpose(k: Building, node: Node) -> Value:
    """Add, for each element, the filter times it to a window of the result."""
    x, w = node[0], node[1]
    windows = windows_of(node, x.shape, k.dims(w)[2:])
    groups = node.integer("group", 1)
    extra = node.integers("output_padding", [0] * windows.axes)
    bias = node.get(2)
    if None in x.shape:
        return _open_transposed(k, node, windows, extra)
    sizes = _result_sizes(node, k.dims(x)[2:], windows, extra)
    flat = len(x.shape) == 3
    if flat:
        x, w, windows, sizes = lifted(k, x), lifted(k, w), windows.flat(), [1, *sizes]
    if len(x.shape) not in (4, 5):
        raise RefusedError(f"a convolution of {len(x.shape) - 2} axes")
    w, windows = _spread(k, w, windows)
    inside = all(n >= size for n, size in zip(_whole(x, windows), sizes, strict=True))
    result = _transposed(k, x, w, bias if inside else None, windows, groups, sizes)
    if bias is not None and not inside:
        result = k.add(Add(result, bias))
    result = first(k, result)
    return lowered(k, result) if flat else result


def _open_transposed(k: Building, node: Node, windows: Windows, extra: Sequence[int]) -> Value:
    """Do the same for images of which an extent is open, be it the batch: those of the result are
    computed of them. Raises RefusedError for windows whose padding depends on the extents.
    """
    auto, sizes = node.text("auto_pad", "NOTSET"), node.integers("output_shape", [])
    cut = windows.pads[:, 1] - np.array(extra)
    if windows.axes != 2 or sizes or auto.startswith("SAME") or (cut < 0).any():
        raise RefusedError(f"the shape of {quoted(node[0].name)} is not known")
    w, windows = _spread(k, node[1], windows)
    image = last(k, node[0])
    strides, beyond = np.array(windows.strides), np.array(windows.kernel) - windows.strides
    pixels = k.cast(extents(k, image, 1, 3), TensorType.INT32)
    whole = k.add(Add(k.add(Mul(pixels, k.int32(strides))), k.int32(beyond)))
    batch = k.cast(extents(k, image, 0, 1), TensorType.INT32)
    steps = {n: s for n, s in _steps(windows).items() if n.startswith("stride")}

    def convolve(part: Value, filters: Value, bias: Value | None) -> Value:
        shape = joined(k, [batch, whole, k.int32([k.dims(filters)[1]])], 0)
        order = k.transpose(filters, (1, 2, 3, 0))
        return k.make(TransposeConv, (shape, order, part, bias), padding=Padding.VALID, **steps)

    result = grouped(k, node.integer("group", 1), (image, -1), (w, 0), node.get(2), convolve)
    begin, end = [0, *windows.pads[:, 0].tolist(), 0], [0, *(-cut).tolist(), 0]
    if any(begin) or any(end):
        open_ = sum(1 << place for place, n in enumerate(end) if n == 0)
        vectors = (k.int32(numbers) for numbers in (begin, end, [1] * 4))
        result = k.make(StridedSlice, (result, *vectors), end_mask=open_)
    return first(k, result)


def _result_sizes(
    node: Node, extents: tuple[int, ...], windows: Windows, extra: list[int]
) -> list[int]:
    """Compute the extents of the result, and bring the padding in line with given extents: ONNX's
    ConvTranspose.
    """
    rows = zip(extents, windows.strides, windows.spans(), extra, strict=True)
    whole = [(n - 1) * stride + span + added for n, stride, span, added in rows]
    auto = node.text("auto_pad", "NOTSET")
    sizes = node.integers("output_shape", [])[-windows.axes :]
    if auto.startswith("SAME") and not sizes:
        sizes = [n * stride for n, stride in zip(extents, windows.strides, strict=True)]
    if not sizes:
        return [n - int(pads.sum()) for n, pads in zip(whole, windows.pads, strict=True)]
    for axis, (have, want) in enumerate(zip(whole, sizes, strict=True)):
        cut = max(0, have - want)
        small = cut // 2
        windows.pads[axis] = (cut - small, small) if auto == "SAME_LOWER" else (small, cut - small)
    return sizes


def _spread(k: Building, w: Value, windows: Windows) -> tuple[Value, Windows]:
    """Put zeros between the elements of dilated filters: circle's are dense."""
    if max(windows.dilations) == 1:
        return w, windows
    data = k.known(w)
    spread = k.filled((*data.shape[:2], *windows.spans()), 0, data.dtype)
    spread[(slice(None), slice(None), *(slice(None, None, d) for d in windows.dilations))] = data
    ones = [1] * windows.axes
    return k.constant(spread), Windows(windows.spans(), windows.strides, ones, windows.pads)


def _transposed(
    k: Building,
    x: Value,
    w: Value,
    bias: Value | None,
    windows: Windows,
    groups: int,
    sizes: list[int],
) -> Value:
    """Compute the whole result, and cut the padding off; what is beyond it is 0. Padding as circle
    places it needs no cut.
    """
    same = _is_same(windows, sizes, x.shape[2:])
    padding = Padding.SAME if same else Padding.VALID
    whole = sizes if same else _whole(x, windows)

    def convolve(part: Value, filters: Value, bias: Value | None) -> Value:
        outputs = k.dims(filters)[1]
        shape = k.constant(np.array([part.shape[0] or 1, *whole, outputs], np.int32))
        steps = {n: s for n, s in _steps(windows).items() if n.startswith("stride")}
        if windows.axes == 3:
            order = k.transpose(filters, (2, 3, 4, 1, 0))
            return k.make(
                Conv3DTranspose, (shape, order, part, bias), padding=Padding.VALID, **steps
            )
        order = k.transpose(filters, (1, 2, 3, 0))
        return k.make(TransposeConv, (shape, order, part, bias), padding=padding, **steps)

    image = last(k, x)
    result = grouped(k, groups, (image, -1), (w, 0), bias, convolve)
    if same:
        return result
    return _window(k, result, windows.pads[:, 0].tolist(), sizes)


def _is_same(windows: Windows, sizes: Sequence[int], extents: Shape) -> bool:
    """Return whether padding is SAME's of a convolution from the result to the data."""
    if windows.axes != 2 or not windows.pads.any():
        return False
    rows = zip(sizes, extents, windows.kernel, windows.strides, windows.pads[:, 0], strict=True)
    return all(
        window(size, kernel, stride, 1, Padding.SAME) == extent
        and padding_before(size, kernel, stride, 1, Padding.SAME) == before
        for size, extent, kernel, stride, before in rows
    )


def _whole(x: Value, windows: Windows) -> list[int]:
    """Compute the extents of all that windows reach."""
    rows = zip(x.shape[2:], windows.strides, windows.kernel, strict=True)
    return [(int(n or 0) - 1) * stride + size for n, stride, size in rows]


def _window(k: Building, image: Value, begin: list[int], sizes: list[int]) -> Value:
    """Cut a part of an image, adding zeros where it reaches beyond."""
    beyond = [
        max(0, b + n - int(e or 0)) for b, n, e in zip(begin, sizes, image.shape[1:-1], strict=True)
    ]
    if any(beyond):
        table = np.array([(0, 0), *((0, m) for m in beyond), (0, 0)], np.int64)
        image = padded(k, image, table, k.like(image, 0))
    if not any(begin) and list(image.shape[1:-1]) == sizes:
        return image
    starts = k.constant(np.array([0, *begin, 0], np.int32))
    return k.add(Slice(image, starts, k.constant(np.array([-1, *sizes, -1], np.int32))))
