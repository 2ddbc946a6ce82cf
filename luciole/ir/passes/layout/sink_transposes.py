"""Move TRANSPOSE down a graph until they meet their inverse, and drop both.

Converters that bring networks with channels before the axes of images to the order of circle leave
a TRANSPOSE on each side of every convolution. Numbers stay bit for bit the same, but
for means and sums, which add in another order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from luciole.ir.dtypes import Array
from luciole.ir.graph import Graph
from luciole.ir.op import Op
from luciole.ir.ops.activations import Rectifier
from luciole.ir.ops.cast import Cast
from luciole.ir.ops.concatenation import Concatenation
from luciole.ir.ops.elementwise_binary import Binary
from luciole.ir.ops.elementwise_unary import Unary
from luciole.ir.ops.pad import Pad, PadV2
from luciole.ir.ops.prelu import PRelu
from luciole.ir.ops.quantize import Dequantize, Quantize
from luciole.ir.ops.reduce import Reduction
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.select import SelectV2
from luciole.ir.ops.split import Split
from luciole.ir.ops.split_v import SplitV
from luciole.ir.ops.transpose import Transpose
from luciole.ir.passes.cleaning.remove_dead import remove_dead
from luciole.ir.quantization import affine_of
from luciole.ir.rewriting.patterns import Order, integers_of, inverse, made_by, order_of
from luciole.ir.rewriting.turn_reshapes import turn_reshape
from luciole.ir.value import Value

_ELEMENTS = (Unary, Rectifier, PRelu, Binary, SelectV2, Cast, Quantize, Dequantize)
"""Operators that work element by element, and stretch what has fewer."""
MOVED = "/moved"
"""Behind the name of a tensor that is another one before its TRANSPOSE."""


def sink_transposes(graph: Graph) -> bool:
    """ADD(TRANSPOSE(x), TRANSPOSE(y)) -> TRANSPOSE(ADD(x, y)), TRANSPOSE(TRANSPOSE(x)) -> x.

    Every TRANSPOSE moves behind the operators that read it where these can be asked for the other
    order of axes, and pairs that turn each other round go.
    """
    changed = False
    for op in list(graph.ops):
        if op.graph is None:
            continue
        changed |= _moved(graph, op)
    return (remove_dead(graph) or changed) if changed else False


def _moved(graph: Graph, op: Op) -> bool:
    if isinstance(op, Transpose):
        return _cancel(graph, op)
    if isinstance(op, Reduction) and not op.keep_dims:
        return _reduce_before(graph, op)
    if isinstance(op, Split | SplitV):
        return _split_before(graph, op)
    return turn_reshape(graph, op) if isinstance(op, Reshape) else _sink(graph, op)


def _cancel(graph: Graph, op: Transpose) -> bool:
    """Drop a TRANSPOSE that changes nothing, and join one with another before it."""
    order = order_of(op)
    if order is None:
        return False
    before = made_by(op.a, Transpose)
    inner = None if before is None else order_of(before)
    if before is None or inner is None:
        return order == tuple(range(len(order))) and _replace(op, op.a)
    both = tuple(inner[i] for i in order)
    if both == tuple(range(len(both))):
        return _replace(op, before.a)
    op.set_operands([before.a, _vector(graph, "perm", both)])
    return True


def _replace(op: Op, value: Value) -> bool:
    """Replace a result by another value for its users, and for the caller under its name."""
    result = op.output
    if result.is_output and (value.producer is None or value.is_output):
        return False
    if not (result.is_output or result.users):
        return False
    if result.is_output:
        result.name, value.name = value.name, result.name
    result.replace_with(value)
    return True


def _vector(graph: Graph, name: str, numbers: Sequence[int]) -> Value:
    return graph.add_constant(graph.unique_name(name), np.array(numbers, np.int32))


def _sink(graph: Graph, op: Op) -> bool:
    """Move the TRANSPOSE of an operator's operands behind it."""
    if len(op.results) != 1 or op.stateful or not op.output.shape:
        return False
    orders = {order_of(t) for v in op.operands if v is not None and (t := made_by(v, Transpose))}
    if len(orders) != 1:
        return False
    order = orders.pop()
    if order is None or len(op.output.shape) != len(order) or not _pays(op, order):
        return False
    new = _in_order(graph, op, order)
    if new is None:
        return False
    _put(graph, op, new, order)
    return True


def _split_before(graph: Graph, op: Split | SplitV) -> bool:
    """Split the operand of a TRANSPOSE, and turn the parts, where these meet TRANSPOSE again or are
    joined again.
    """
    before, along = made_by(op.input, Transpose), integers_of(op.split_dim)
    order = None if before is None else order_of(before)
    if before is None or order is None or along is None or not all(map(_meets, op.results)):
        return False
    axis = np.full(op.split_dim.dims, order[along[0] % len(order)], np.int32)
    place = graph.add_constant(graph.unique_name(f"{op.name}/axis"), axis)
    slots = [place, before.a] if isinstance(op, Split) else [before.a, op.operands[1], place]
    parts = [_value_before(graph, result, order) for result in op.results]
    graph.insert_before(op, op.clone(slots), results=parts)
    names = [result.name for result in op.results]
    turned = [_turned(graph, op, *pair, order) for pair in zip(parts, op.results, strict=True)]
    graph.remove(op)
    for value, name in zip(turned, names, strict=True):
        value.name = name
    return True


def _meets(value: Value) -> bool:
    """Return whether all that reads a part turns it again, or joins it with others."""
    readers = [use.op for use in value.users]
    return not value.is_output and all(isinstance(op, Transpose | Concatenation) for op in readers)


def _value_before(graph: Graph, result: Value, order: Order) -> Value:
    """Make the tensor that a TRANSPOSE of this order makes a result of."""
    made = Value(graph.unique_name(f"{result.name}{MOVED}"), result.dtype)
    made.shape = _unmoved(result.shape, order)
    made.quantization = result.quantization
    return graph.add_value(made)


def _turned(graph: Graph, op: Op, made: Value, result: Value, order: Order) -> Value:
    """Replace a result by a TRANSPOSE in front of its operator."""
    last = Transpose(made, _vector(graph, "perm", order))
    graph.insert_before(op, last, graph.unique_name(result.name))
    last.output.dtype, last.output.quantization = result.dtype, result.quantization
    result.replace_with(last.output)
    return last.output


def _pays(op: Op, order: Order) -> bool:
    """Return whether there are no more TRANSPOSE then: all that are read go, and one comes."""
    read = [v for v in op.operands if v is not None and not v.is_constant]
    return all(
        made_by(v, Transpose) is not None
        or v.shape in ((), (1,))
        or _moved_already(op, v, order) is not None
        for v in read
    )


def _moved_already(op: Op, value: Value, order: Order) -> Value | None:
    """Return the tensor that an earlier TRANSPOSE, which this order turns back, made of a value."""
    ops = op.own_graph.ops
    for use in value.users:
        back = order_of(use.op) if isinstance(use.op, Transpose) else None
        turned = back is not None and tuple(back[axis] for axis in order) == tuple(
            range(len(order))
        )
        if turned and ops.index(use.op) < ops.index(op):
            return use.op.output
    return None


def _put(graph: Graph, op: Op, new: Op, order: Order) -> None:
    """Put an operator and a TRANSPOSE behind it in another's place."""
    result, name = op.output, op.output.name
    made = _value_before(graph, result, order)
    graph.insert_before(op, new, results=[made])
    last = _turned(graph, op, made, result, order)
    graph.remove(op)
    last.name = name


def _unmoved(shape: tuple[int | None, ...], order: Order) -> tuple[int | None, ...]:
    return tuple(shape[order.index(axis)] for axis in range(len(order)))


def _in_order(graph: Graph, op: Op, order: Order) -> Op | None:
    """Make the operator on what is before the TRANSPOSE of its operands; None where it cannot be
    asked for that.
    """
    if isinstance(op, _ELEMENTS):
        return _elements(graph, op, order)
    if isinstance(op, Concatenation):
        new = _elements(graph, op, order)
        if isinstance(new, Concatenation):
            new.axis = order[op.axis % len(order)]
        return new
    if isinstance(op, Reduction) and op.keep_dims:
        return _reduction(graph, op, order)
    if isinstance(op, Pad | PadV2) and any(isinstance(u.op, Transpose) for u in op.output.users):
        return _pad(graph, op, order)
    return None


def _elements(graph: Graph, op: Op, order: Order) -> Op | None:
    slots = [None if v is None else _under(graph, op, v, order) for v in op.operands]
    if any(new is None and old is not None for new, old in zip(slots, op.operands, strict=True)):
        return None
    return op.clone(slots)


def _under(graph: Graph, op: Op, value: Value, order: Order) -> Value | None:
    """Find the value of which a TRANSPOSE makes this one; a constant is transposed."""
    before = made_by(value, Transpose)
    if before is not None:
        return before.a
    already = None if value.is_constant else _moved_already(op, value, order)
    if already is not None:
        return already
    if value.shape in ((), (1,)):
        return value
    data, affine = value.data, affine_of(value)
    by_channel = affine is not None and affine.scale.size > 1
    if data is None or by_channel or data.ndim > len(order):
        return None
    wide = data.reshape((1,) * (len(order) - data.ndim) + data.shape)
    moved = np.ascontiguousarray(wide.transpose(inverse(order)))
    if isinstance(op, PRelu) and len(moved) == 1:
        moved = moved[0]  # as Keras has it: slopes say nothing of the batch
    constant = graph.add_constant(graph.unique_name(value.name), moved, value.dtype)
    constant.quantization = value.quantization
    return constant


def _reduction(graph: Graph, op: Reduction, order: Order) -> Op | None:
    axes, before = op.reduction_indices.data, made_by(op.input, Transpose)
    if axes is None or before is None:
        return None
    moved = sorted(order[int(axis) % len(order)] for axis in axes.reshape(-1))
    return op.clone([before.a, _vector(graph, "axes", moved)])


def _reduce_before(graph: Graph, op: Reduction) -> bool:
    """Drop the TRANSPOSE before a reduction that drops its axes, where the axes that stay have the
    same order without it.
    """
    axes, before = op.reduction_indices.data, made_by(op.input, Transpose)
    order = None if before is None else order_of(before)
    if axes is None or before is None or order is None:
        return False
    gone = {order[int(axis) % len(order)] for axis in axes.reshape(-1)}
    left = [axis for axis in order if axis not in gone]
    if left != sorted(left):
        return False
    op.set_operands([before.a, _vector(graph, "axes", sorted(gone))])
    return True


def _pad(graph: Graph, op: Pad | PadV2, order: Order) -> Op | None:
    table, before = op.paddings.data, made_by(op.input, Transpose)
    if table is None or before is None:
        return None
    moved: Array = np.zeros_like(table)
    moved[list(order)] = table
    pads = graph.add_constant(graph.unique_name("paddings"), moved)
    return op.clone([before.a, pads, *op.operands[2:]])
