"""Pools: the largest, the mean or the norm of each window."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from luciole.importers.onnx.building import Building, is_single
from luciole.importers.onnx.errors import RefusedError
from luciole.importers.onnx.node import Node
from luciole.importers.onnx.operators.convolution import first, last, lifted, lowered
from luciole.importers.onnx.operators.shape import padded
from luciole.importers.onnx.rules import rule
from luciole.importers.onnx.windows import Windows, windows_of
from luciole.ir import TensorType, Value
from luciole.ir.dtypes import integer_range
from luciole.ir.ops import reduce
from luciole.ir.ops.elementwise_binary import Div, Mul, Pow
from luciole.ir.ops.elementwise_unary import Abs
from luciole.ir.ops.pool_2d import AveragePool2D, MaxPool2D
from luciole.ir.ops.reduce_window import ReduceWindow
from luciole.schema.enums import Padding, ReduceWindowFunction


@rule("MaxPool", "AveragePool", "LpPool")
def pool(k: Building, node: Node) -> Value:
    """Pool images of any number of axes."""
    node.alone()
    if node.integer("storage_order", 0):
        raise RefusedError("its places count columns first")
    x = node[0]
    windows = windows_of(node, x.shape, node.integers("kernel_shape"))
    flat = len(x.shape) == 3
    if flat:
        x, windows = lifted(k, x), windows.flat()
    beyond = _round_up(k, node, x, windows)
    image = last(k, x)
    if node.kind == "MaxPool":
        windows.pads += beyond
        pooled = _largest(k, image, windows)
    elif node.kind == "AveragePool":
        pooled = _means(k, image, windows, beyond, node.flag("count_include_pad"))
    else:
        windows.pads += beyond
        pooled = _norms(k, image, windows, node.integer("p", 2))
    pooled = first(k, pooled)
    return lowered(k, pooled) if flat else pooled


def _round_up(k: Building, node: Node, x: Value, windows: Windows) -> NDArray[np.int64]:
    """Compute how far windows reach over the padding at the ends where extents are rounded up: a
    window must still begin inside of the image or the padding before it.
    """
    beyond = np.zeros_like(windows.pads)
    if not node.flag("ceil_mode"):
        return beyond
    for axis, (extent, span) in enumerate(zip(k.dims(x)[2:], windows.spans(), strict=True)):
        stride = windows.strides[axis]
        whole = extent + int(windows.pads[axis].sum())
        count = -(-(whole - span) // stride) + 1
        if (count - 1) * stride >= extent + int(windows.pads[axis][0]):
            count -= 1
        beyond[axis][1] = max(0, (count - 1) * stride + span - whole)
    return beyond


def _largest(k: Building, image: Value, windows: Windows) -> Value:
    known = image.dtype == TensorType.FLOAT32 or is_single(image)
    plain = windows.axes == 2 and max(windows.dilations) == 1 and known
    if plain and windows.pads.any() and windows.is_same(image.shape[1:-1]):
        return k.make(MaxPool2D, (image,), padding=Padding.SAME, **_sizes(windows))
    lowest = k.like(image, _lowest(image.dtype))
    image = padded(k, image, windows.table(), lowest)
    if plain:
        return k.make(MaxPool2D, (image,), padding=Padding.VALID, **_sizes(windows))
    return _reduced(k, image, windows, ReduceWindowFunction.MAXIMUM, lowest)


def _lowest(dtype: TensorType) -> float:
    limits = integer_range(dtype)
    return float("-inf") if limits is None else limits[0]


def _sizes(windows: Windows) -> dict[str, int]:
    (h, w), (down, right) = windows.kernel, windows.strides
    return {"filter_height": h, "filter_width": w, "stride_h": down, "stride_w": right}


def _reduced(
    k: Building, image: Value, windows: Windows, function: ReduceWindowFunction, initial: Value
) -> Value:
    sizes = ([1, *v, 1] for v in (windows.kernel, windows.strides, windows.dilations))
    operands = [k.constant(np.array(v, np.int64)) for v in sizes]
    return k.make(ReduceWindow, (image, initial, *operands), reduce_function=function)


def _means(
    k: Building,
    image: Value,
    windows: Windows,
    beyond: NDArray[np.int64],
    padding_counts: bool,
) -> Value:
    """Divide the sum of each window by how many of its elements count."""
    plain = windows.axes == 2 and max(windows.dilations) == 1
    everything = (windows.pads + beyond).any()
    inner = Windows(windows.kernel, windows.strides, windows.dilations, windows.pads + beyond)
    if plain and not padding_counts and everything and inner.is_same(image.shape[1:-1]):
        return k.make(AveragePool2D, (image,), padding=Padding.SAME, **_sizes(windows))
    if plain and (not everything or (padding_counts and not beyond.any())):
        whole = padded(k, image, inner.table(), k.like(image, 0))
        return k.make(AveragePool2D, (whole,), padding=Padding.VALID, **_sizes(windows))
    counted, extra = [1, *k.dims(image)[1:-1], 1], Windows([], [], [], beyond).table()
    k.budget.spend(4 * math.prod(np.add(counted, inner.table().sum(1)).tolist()))
    ones = np.pad(k.filled(counted, 1), windows.table(), constant_values=float(padding_counts))
    ones = np.pad(ones, extra)
    whole, counts = padded(k, image, inner.table(), k.like(image, 0)), k.constant(ones)
    if plain:
        means = k.make(AveragePool2D, (whole,), padding=Padding.VALID, **_sizes(windows))
        share = np.prod(windows.kernel) / k.known(_sums(k, counts, windows))
        return k.add(Mul(means, k.like(means, share)))
    return k.add(Div(_sums(k, whole, windows), _sums(k, counts, windows)))


def _sums(k: Building, image: Value, windows: Windows) -> Value:
    return _reduced(k, image, windows, ReduceWindowFunction.ADD, k.like(image, 0))


def _norms(k: Building, image: Value, windows: Windows, p: int) -> Value:
    """Compute (sum |x|^p)^(1/p) of each window."""
    powers = k.add(Pow(k.add(Abs(image)), k.like(image, p)))
    whole = padded(k, powers, windows.table(), k.like(image, 0))
    return k.add(Pow(_sums(k, whole, windows), k.like(image, 1 / p)))


@rule("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(k: Building, node: Node) -> Value:
    """Pool whole images."""
    x = node[0]
    axes = k.constant(np.arange(2, len(x.shape), dtype=np.int32))
    if node.kind == "GlobalLpPool":
        p = node.integer("p", 2)
        powers = k.add(Pow(k.add(Abs(x)), k.like(x, p)))
        return k.add(Pow(k.add(reduce.Sum(powers, axes, keep_dims=True)), k.like(x, 1 / p)))
    cls = reduce.Mean if node.kind == "GlobalAveragePool" else reduce.ReduceMax
    return k.add(cls(x, axes, keep_dims=True))
