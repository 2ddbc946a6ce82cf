"""Taking and putting elements by their places."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from luciole.importers.onnx.building import Building
from luciole.importers.onnx.errors import RefusedError
from luciole.importers.onnx.node import Node
from luciole.importers.onnx.operators.shape import extents as extents_of
from luciole.importers.onnx.rules import rule
from luciole.ir import Op, TensorType, Value
from luciole.ir.ops import comparisons, unsorted_segment
from luciole.ir.ops import elementwise_binary as binary
from luciole.ir.ops.concatenation import Concatenation
from luciole.ir.ops.gather import Gather
from luciole.ir.ops.gather_nd import GatherNd
from luciole.ir.ops.one_hot import OneHot
from luciole.ir.ops.scatter_nd import ScatterNd
from luciole.ir.ops.select import SelectV2
from luciole.ir.ops.where import Where


def counted(k: Building, places: Value, value: Value, axis: int) -> Value:
    """Count places along an axis of a value from the front: negative ones are from its end, and
    none of circle's operators has them.
    """
    extent = value.shape[axis]
    if places in k.nodes.counters:
        return k.nodes.counters[places]
    if places.dtype not in (TensorType.INT32, TensorType.INT64):
        places = k.cast(places, TensorType.INT32)
    if places.data is not None:
        numbers = places.data
        if (
            extent is not None
            and numbers.size
            and not -extent <= numbers.min() <= numbers.max() < extent
        ):
            raise RefusedError(f"a place is outside of the axis of {extent} elements")
        if not numbers.size or numbers.min() >= 0:
            return places
    if k.nodes.is_ours and places.data is None:
        return places  # kernels refuse negative ones
    if extent == 0:
        raise RefusedError("it takes elements of an empty axis")
    if extent is None:
        count = k.cast(extents_of(k, value, axis, axis + 1), places.dtype)
        return k.add(binary.FloorMod(places, k.reshape(count, ())))
    return k.add(binary.FloorMod(places, k.like(places, extent)))


@rule("Gather")
def gather(k: Building, node: Node) -> Value:
    """Take slices along an axis."""
    axis = k.axis(node.integer("axis", 0), node[0])
    return k.add(Gather(node[0], counted(k, node[1], node[0], axis), axis=axis))


def _counted_rows(k: Building, places: Value, extents: NDArray[np.int64]) -> Value:
    """Count places of several axes from the front, as INT64."""
    places = k.cast(places, TensorType.INT64)
    known = places.data
    counted_already = k.nodes.is_ours if known is None else known.min(initial=0) >= 0
    if counted_already:
        return places
    return k.add(binary.FloorMod(places, k.constant(extents.astype(np.int64))))


@rule("GatherND")
def gather_nd(k: Building, node: Node) -> Value:
    """Take slices, whose first places stand along the last axis."""
    x, places = node[0], node[1]
    batch = node.integer("batch_dims", 0)
    depth = k.dims(places)[-1]
    extents = np.array(k.dims(x)[batch : batch + depth])
    places = _counted_rows(k, places, extents)
    if batch:
        outer = k.dims(places)[:-1]
        k.budget.spend(len(outer) * math.prod(outer) * 8)
        grid = np.moveaxis(np.indices(outer)[:batch], 0, -1).astype(np.int64)
        places = k.add(Concatenation((k.constant(grid), places), axis=len(outer)))
    return k.add(GatherNd(x, places))


@rule("GatherElements")
def gather_elements(k: Building, node: Node) -> Value:
    """Take the element at another place along an axis, for each element."""
    places = flat_places(k, node[0], node[1], node.integer("axis", 0))
    flat = k.reshape(node[0], (math.prod(k.dims(node[0])),))
    return k.add(Gather(flat, places, axis=0))


def flat_places(k: Building, x: Value, places: Value, axis: int) -> Value:
    """Number the elements of x that places along an axis mean, counted over all axes."""
    axis, dims, extents = k.axis(axis, x), k.dims(x), k.dims(places)
    if len(dims) != len(extents) or math.prod(dims) >= 1 << 31:
        raise RefusedError(f"places {list(extents)} in {list(dims)}")
    strides = [math.prod(dims[i + 1 :]) for i in range(len(dims))]
    others = k.filled(extents, 0, np.int64)
    for i, steps in enumerate(np.indices(extents, sparse=True)):
        others += 0 if i == axis else strides[i] * steps
    along = k.cast(counted(k, places, x, axis), TensorType.INT32)
    scaled = k.add(binary.Mul(along, k.constant(np.int32(strides[axis]))))
    return k.add(binary.Add(scaled, k.constant(others.astype(np.int32))))


@rule("ScatterElements", "Scatter")
def scatter_elements(k: Building, node: Node) -> Value:
    """Put elements at other places along an axis."""
    places = flat_places(k, node[0], node[1], node.integer("axis", 0))
    count = math.prod(k.dims(places))
    updates = k.reshape(node[2], (count, 1))
    return _scattered(k, node, k.reshape(places, (count,)), updates)


@rule("ScatterND")
def scatter_nd(k: Building, node: Node) -> Value:
    """Put slices, whose first places stand along the last axis of the second operand."""
    dims, extents = k.dims(node[0]), k.dims(node[1])
    depth, count = extents[-1], math.prod(extents[:-1])
    strides = np.array([math.prod(dims[i + 1 : depth]) for i in range(depth)], np.int64)
    places = _counted_rows(k, node[1], np.array(dims[:depth]))
    if node.text("reduction", "none") == "add" and _is_zero(node[0]):
        shape = k.constant(np.array(dims, np.int32))
        return k.add(ScatterNd(k.cast(places, TensorType.INT32), node[2], shape))
    places = k.reshape(places, (count, depth))
    scaled = k.add(binary.Mul(places, k.constant(strides)))
    from luciole.ir.ops.reduce import Sum

    flat = k.add(Sum(scaled, k.constant(np.array([1], np.int32)), keep_dims=False))
    updates = k.reshape(node[2], (count, math.prod(dims[depth:])))
    return _scattered(k, node, k.cast(flat, TensorType.INT32), updates)


def _is_zero(x: Value) -> bool:
    """Return whether a value is constant floats of 0, to which SCATTER_ND adds."""
    return x.dtype == TensorType.FLOAT32 and x.data is not None and not x.data.any()


_SEGMENTS: dict[str, tuple[type[Op], type[Op]]] = {
    "add": (unsorted_segment.UnsortedSegmentSum, binary.Add),
    "mul": (unsorted_segment.UnsortedSegmentProd, binary.Mul),
    "max": (unsorted_segment.UnsortedSegmentMax, binary.Maximum),
    "min": (unsorted_segment.UnsortedSegmentMin, binary.Minimum),
}


def _scattered(k: Building, node: Node, places: Value, updates: Value) -> Value:
    """Put rows [n, m] at places [n] of the first operand, seen as rows of m elements."""
    x = node[0]
    width = max(1, k.dims(updates)[1])
    rows = math.prod(k.dims(x)) // width
    flat, count = k.reshape(x, (rows, width)), k.constant(np.int32(rows))
    reduction = node.text("reduction", "none")
    if reduction in _SEGMENTS:
        reduce, join = _SEGMENTS[reduction]
        joined = k.make(reduce, (updates, places, count))
        return k.reshape(k.add(join.from_operands((flat, joined), {})), k.dims(x))
    if reduction != "none":
        raise RefusedError(f"its reduction {reduction} is not done")
    shape = k.constant(np.array([rows, width], np.int32))
    column = k.reshape(places, (*places.shape, 1))
    put = k.add(ScatterNd(column, updates, shape))
    ones = k.held(k.filled(k.dims(updates), 1, np.int32))
    there = k.add(ScatterNd(column, ones, shape))
    mask = k.add(comparisons.Greater(there, k.constant(np.int32(0))))
    return k.reshape(k.add(SelectV2(mask, put, flat)), k.dims(x))


@rule("OneHot")
def one_hot(k: Building, node: Node) -> Value:
    """Put one number where places say, another elsewhere."""
    depth = k.integers(node[1])[0]
    values = k.known(node[2])
    places = k.cast(node[0], TensorType.INT32)
    behind = k.add(binary.Add(places, k.constant(np.int32(depth))))
    negative = k.add(comparisons.Less(places, k.constant(np.int32(0))))
    places = k.add(SelectV2(negative, behind, places))
    axis = node.integer("axis", -1)
    axis = axis if axis >= 0 else axis + len(places.shape) + 1
    axis = -1 if axis == len(places.shape) else axis
    off, on = (k.constant(values[i]) for i in (0, 1))
    return k.add(OneHot(places, k.constant(np.int32(depth)), on, off, axis=axis))


@rule("NonZero")
def non_zero(k: Building, node: Node) -> Value:
    """Find the places of elements that are not 0, an axis in each row."""
    x = node[0]
    if not x.shape:
        x = k.reshape(x, (1,))
    if x.data is not None:
        return k.constant(np.array(np.nonzero(x.data), np.int64))
    return k.transpose(k.add(Where(x)), (1, 0))


@rule("Compress")
def compress(k: Building, node: Node) -> Value:
    """Keep the slices for which a condition holds."""
    x, condition = node[0], node[1]
    if not node.has("axis"):
        x, axis = k.reshape(x, (math.prod(k.dims(x)),)), 0
    else:
        axis = k.axis(node.integer("axis"), x)
    if condition.data is not None:
        return k.add(Gather(x, k.constant(np.flatnonzero(condition.data)), axis=axis))
    places = k.reshape(k.add(Where(condition)), (None,))
    return k.add(Gather(x, places, axis=axis))
