"""Spell out CUSTOM(MaxPoolWithArgmax), for which neither circle nor TFLite has an operator."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from luciole.ir.dtypes import Array
from luciole.ir.graph import Graph
from luciole.ir.op import Op
from luciole.ir.ops.arg_min_max import ArgMax
from luciole.ir.ops.cast import Cast
from luciole.ir.ops.concatenation import Concatenation
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.elementwise_binary import Add, Mul
from luciole.ir.ops.elementwise_unary import Floor
from luciole.ir.ops.pad import PadV2
from luciole.ir.ops.pool_2d import MaxPool2D
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.split import Split
from luciole.ir.rewriting.custom_options import options_of
from luciole.ir.rewriting.edits import constant, is_float, put, vector
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rules import padding_before, window
from luciole.ir.unknown_op import UnknownOp
from luciole.ir.value import Value
from luciole.schema.enums import Padding, TensorType

_EXACT = 2**24
"""Float32 counts up to here without a gap."""


@dataclass(frozen=True)
class _Windows:
    """An image's shape, kernels and strides along height and width, and how many windows there are
    with how much padding before and behind them.
    """

    shape: tuple[int, ...]
    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: Padding
    with_batch: bool

    def counts(self) -> tuple[int, int]:
        """Count the windows along height and width."""
        counts = (window(*each, 1, self.padding) for each in self._sides())
        height, width = (count or 0 for count in counts)
        return height, width

    def before(self) -> tuple[int, int]:
        """Count rows and columns of padding before the image."""
        top, left = (padding_before(*each, 1, self.padding) for each in self._sides())
        return top, left

    def paddings(self) -> Array:
        """Count the padding before and behind each axis [4, 2]."""
        counts, before, sides = self.counts(), self.before(), list(self._sides())
        behind = [
            max((count - 1) * stride + kernel - size - first, 0)
            for count, first, (size, kernel, stride) in zip(counts, before, sides, strict=True)
        ]
        return np.array([[0, 0], *zip(before, behind, strict=True), [0, 0]], np.int32)

    def origins(self, channel: int) -> Array:
        """Compute the index of each window's first element [n, h, w, 1] in an image of all
        channels, or in all images; those in the padding would have one below 0.
        """
        batch, height, width, channels = self.shape
        (rows, columns), (top, left) = self.counts(), self.before()
        y = (np.arange(rows) * self.stride[0] - top)[None, :, None, None]
        x = (np.arange(columns) * self.stride[1] - left)[None, None, :, None]
        image = np.arange(batch if self.with_batch else 1)[:, None, None, None] * height
        return ((image + y) * width + x) * channels + channel

    def _sides(self) -> zip[tuple[int, int, int]]:
        return zip(self.shape[1:3], self.kernel, self.stride, strict=True)


@rewrite(UnknownOp, makes=(ArgMax, MaxPool2D))
def resolve_customop_max_pool_with_argmax(graph: Graph, op: UnknownOp) -> bool:
    """CUSTOM(MaxPoolWithArgmax, x) -> MAX_POOL_2D(x), and of each channel ARG_MAX(CONV_2D(x)).

    The convolution lays the elements of a window side by side, ARG_MAX finds the first largest one,
    and its place in the image is computed of that in floats, which are exact below 2^24.
    """
    known = op.custom == "MaxPoolWithArgmax" and len(op.inputs) == 1
    windows = _windows(op) if known else None
    if windows is None:
        return False
    (x,), (largest, index) = op.inputs, op.results
    assert x is not None, "_windows asks for it"
    indices = _indices(graph, op, x, windows)
    pool = MaxPool2D(
        x,
        padding=windows.padding,
        stride_h=windows.stride[0],
        stride_w=windows.stride[1],
        filter_height=windows.kernel[0],
        filter_width=windows.kernel[1],
    )
    cast = Cast(indices, in_data_type=TensorType.FLOAT32, out_data_type=index.dtype)
    op.results = ()
    largest.producer = index.producer = None
    graph.insert_before(op, pool, results=[largest])
    graph.insert_before(op, cast, results=[index])
    graph.remove(op)
    return True


def _windows(op: UnknownOp) -> _Windows | None:
    """Read the windows from custom options, None where they are none, or indices too large."""
    options = options_of(op) or {}
    kernel, stride = (_plane(options.get(name)) for name in ("ksize", "strides"))
    padding, x = _PADDINGS.get(str(options.get("padding"))), op.inputs[0]
    if kernel is None or stride is None or padding is None or x is None or len(op.results) != 2:
        return None
    if not is_float(x) or len(x.shape) != 4 or None in x.shape or 0 in x.shape:
        return None
    shape, with_batch = x.dims, options.get("include_batch_in_index") is True
    windows = _Windows(shape, kernel, stride, padding, with_batch)
    said = (shape[0], *windows.counts(), shape[3])
    if 0 in said or any(value.shape != said for value in op.results):
        return None
    elements = math.prod(shape if with_batch else shape[1:])
    return windows if elements < _EXACT and op.results[1].dtype in _COUNTS else None


_PADDINGS = {"SAME": Padding.SAME, "VALID": Padding.VALID}
_COUNTS = (TensorType.INT32, TensorType.INT64)


def _plane(extents: object) -> tuple[int, int] | None:
    """Read extents along height and width, None where other axes have some, too."""
    if not isinstance(extents, list) or len(extents) != 4 or extents[0] != 1 or extents[3] != 1:
        return None
    _, height, width, _ = extents
    whole = isinstance(height, int) and isinstance(width, int) and min(height, width) > 0
    return (height, width) if whole else None


def _indices(graph: Graph, op: UnknownOp, x: Value, windows: _Windows) -> Value:
    """Compute where in the image the largest elements of all channels are, in floats."""
    if windows.paddings().any():
        paddings = constant(graph, f"{op.name}/paddings", windows.paddings(), np.int32)
        least = constant(graph, f"{op.name}/least", np.finfo(np.float32).min)
        x = put(graph, op, PadV2(x, paddings, least), f"{op.name}/padded")
    channels = windows.shape[3]
    parts = [x] if channels == 1 else _split(graph, op, x, channels)
    places = [_of_channel(graph, op, part, k, windows) for k, part in enumerate(parts)]
    if channels == 1:
        return places[0]
    return put(graph, op, Concatenation(tuple(places), axis=3), f"{op.name}/places")


def _split(graph: Graph, op: UnknownOp, x: Value, channels: int) -> list[Value]:
    axis = constant(graph, f"{op.name}/axis", 3, np.int32)
    shape = (*x.shape[:3], 1)
    parts = [
        graph.add_value(Value(graph.unique_name(f"{op.name}/channel"), x.dtype, shape))
        for _ in range(channels)
    ]
    graph.insert_before(op, Split(axis, x, num_splits=channels), results=parts)
    return parts


def _of_channel(graph: Graph, op: UnknownOp, x: Value, channel: int, windows: _Windows) -> Value:
    """Compute where in the image the largest elements of one channel are: the first element of the
    window, and ``columns`` from it, and as many elements more as the image is wider than the
    window in each row from it.
    """
    (height, width), channels = windows.kernel, windows.shape[3]
    each = np.eye(height * width, dtype=np.float32).reshape(-1, height, width, 1)

    def then(new: Op, name: str) -> Value:
        return put(graph, op, new, f"{op.name}/{name}")

    beside = Conv2D(
        x,
        constant(graph, f"{op.name}/each", each),
        constant(graph, f"{op.name}/zero", np.zeros(height * width)),
        padding=Padding.VALID,
        stride_h=windows.stride[0],
        stride_w=windows.stride[1],
    )
    last = constant(graph, f"{op.name}/last", 3, np.int32)
    place = then(ArgMax(then(beside, "beside"), last, output_type=TensorType.INT32), "place")
    extents = (windows.shape[0], *windows.counts(), 1)
    column = Reshape(place, vector(graph, f"{op.name}/shape", extents), new_shape=extents)
    cast = Cast(
        then(column, "column"), in_data_type=TensorType.INT32, out_data_type=TensorType.FLOAT32
    )
    number = then(cast, "number")
    over = np.nextafter(np.float32(1 / width), np.float32(1))  # so that 3 of 3 is no less than 1
    row = then(Floor(then(Mul(number, constant(graph, f"{op.name}/1", over)), "share")), "row")
    wider = constant(graph, f"{op.name}/wider", channels * (windows.shape[2] - width))
    apart = constant(graph, f"{op.name}/apart", channels)
    steps = Add(then(Mul(row, wider), "rows"), then(Mul(number, apart), "steps"))
    origins = constant(graph, f"{op.name}/origins", windows.origins(channel))
    return then(Add(then(steps, "from"), origins), "index")
