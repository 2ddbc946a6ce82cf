"""Exchange TRANSPOSE and RESHAPE, so that a TRANSPOSE meets another one behind the RESHAPE.

A channel shuffle splits the channels, exchanges both halves and joins them again (Zhang et al.
2018, "ShuffleNet: An Extremely Efficient Convolutional Neural Network for Mobile Devices", section
3.1): between images whose channels come last, one of its three TRANSPOSE is left. One that only
moves axes of extent 1 before a RESHAPE goes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from luciole.ir.graph import Graph
from luciole.ir.op import Op
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.transpose import Transpose
from luciole.ir.rewriting.patterns import Order, inverse, made_by, order_of
from luciole.ir.value import Shape, Value


class Run(NamedTuple):
    """Neighbouring axes of a RESHAPE's operand, and those that it makes of them."""

    before: range
    after: range


def turn_reshape(graph: Graph, op: Reshape) -> bool:
    """Drop the TRANSPOSE that a RESHAPE reads where the RESHAPE alone does the same, or join it
    with the one that reads the RESHAPE; neither changes what anything else reads.
    """
    first = made_by(op.tensor, Transpose)
    order = None if first is None else order_of(first)
    if first is None or order is None or op.output.shape.count(None) > 1:
        return False
    exchange = exchanged(op.tensor.shape, op.output.shape, order)
    if exchange is not None and _in_place(exchange[1], op.output.shape):
        extents = _extents(op.output.shape)
        op.set_operands([first.a, _vector(graph, "shape", extents)])
        op.new_shape = extents
        return True
    behind = _reader(op.output)
    if behind is None or _reader(op.tensor) is not op or op.tensor.is_output:
        return False
    if exchange is not None:
        return _sink(graph, op, first, exchange)
    return isinstance(behind, Transpose) and _rise(graph, op, behind)


def exchanged(before: Shape, after: Shape, order: Order) -> tuple[Shape, Order] | None:
    """Exchange a turn by ``order`` to the shape ``before`` and a reshape to ``after``: return the
    shape to reshape to first, and the order to turn by then. None where a run of axes that the
    RESHAPE joins or splits is no run before it is turned.
    """
    parts = list(runs(before, after) or ())
    if not parts:
        return None
    wide = [axis for axis in order if before[order.index(axis)] != 1]
    place = {axis: sorted(wide).index(axis) for axis in wide}
    keys = [[place[order[i]] for i in run.before if order[i] in place] for run in parts]
    sequence = sorted(range(len(parts)), key=lambda i: (keys[i] or [len(wide)])[0])
    if [key for i in sequence for key in keys[i]] != sorted(place.values()):
        return None
    axes = [axis for i in sequence for axis in parts[i].after]
    turned = tuple(axes.index(axis) for axis in range(len(after)))
    return tuple(after[axis] for axis in axes), turned


def runs(before: Shape, after: Shape) -> list[Run] | None:
    """Cut both shapes of a RESHAPE into the shortest runs of axes with as many elements; an extent
    that is not known must stand alone on both sides. None where they cannot be cut.
    """
    cut, i, j = [], 0, 0
    while i < len(before) or j < len(after):
        run = _run(before, after, i, j)
        if run is None:
            return None
        cut.append(run)
        i, j = run.before.stop, run.after.stop
    return cut


def _run(before: Shape, after: Shape, i: int, j: int) -> Run | None:
    """Find the run that begins with the axes ``i`` and ``j``."""
    left, right = before[i : i + 1], after[j : j + 1]
    if left == right:
        return Run(range(i, i + 1), range(j, j + 1))
    if left == (1,) or right == (1,):
        alone = left == (1,)
        return Run(range(i, i + alone), range(j, j + (not alone)))
    a, b, ends = 1, 1, [i, j]
    while a != b or ends == [i, j]:
        side = 0 if a <= b else 1
        shape = (before, after)[side]
        extent = shape[ends[side]] if ends[side] < len(shape) else None
        if not extent:
            return None
        a, b = (a * extent, b) if side == 0 else (a, b * extent)
        ends[side] += 1
    return Run(range(i, ends[0]), range(j, ends[1]))


def _in_place(order: Order, shape: Shape) -> bool:
    """Return whether axes of more than one element keep their sequence in a result's shape."""
    moved = [axis for axis, extent in zip(order, shape, strict=True) if extent != 1]
    return moved == sorted(moved)


def _reader(value: Value) -> Op | None:
    """Find the one operator that reads a value, None where there are more, or it is an output."""
    return value.users[0].op if len(value.users) == 1 and not value.is_output else None


def _sink(graph: Graph, op: Reshape, first: Transpose, exchange: tuple[Shape, Order]) -> bool:
    """Move a TRANSPOSE from before a RESHAPE behind it, where another TRANSPOSE follows."""
    behind = _reader(op.output)
    if not isinstance(behind, Transpose) or order_of(behind) is None:
        return False
    shape, order = exchange
    return _replace(graph, op, _reshape(graph, op, first.a, shape), order)


def _rise(graph: Graph, op: Reshape, behind: Transpose) -> bool:
    """Move the TRANSPOSE behind a RESHAPE in front of it."""
    order = order_of(behind)
    if order is None or None in (*op.tensor.shape, *behind.output.shape):
        return False
    exchange = exchanged(op.output.shape, op.tensor.shape, inverse(order))
    if exchange is None or behind.output.is_output:
        return False
    perm = _vector(graph, "perm", inverse(exchange[1]))
    turned = graph.insert_before(op, Transpose(op.tensor, perm), graph.unique_name("turned"))
    turned.output.quantization = op.tensor.quantization
    made = _reshape(graph, behind, turned.output, behind.output.shape)
    name = behind.output.name
    behind.output.replace_with(made)
    graph.remove(behind)
    made.name = name
    return True


def _reshape(graph: Graph, before: Op, value: Value, shape: Shape) -> Value:
    new = Reshape(value, _vector(graph, "shape", _extents(shape)), new_shape=_extents(shape))
    made = graph.insert_before(before, new, graph.unique_name("reshaped")).output
    made.quantization = value.quantization
    return made


def _replace(graph: Graph, op: Reshape, value: Value, order: Order) -> bool:
    """Replace a RESHAPE's result by a TRANSPOSE of a value."""
    perm = _vector(graph, "perm", order)
    last = graph.insert_before(op, Transpose(value, perm), graph.unique_name("turned"))
    last.output.quantization = op.output.quantization
    op.output.replace_with(last.output)
    graph.remove(op)
    return True


def _extents(shape: Shape) -> tuple[int, ...]:
    return tuple(-1 if extent is None else extent for extent in shape)


def _vector(graph: Graph, name: str, numbers: Sequence[int]) -> Value:
    return graph.add_constant(graph.unique_name(name), np.array(numbers, np.int32))
