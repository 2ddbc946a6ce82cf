"""Edit graphs without moving what callers know: results keep their tensors, names included."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from luciole.ir.dtypes import Array
from luciole.ir.graph import Graph
from luciole.ir.op import Op
from luciole.ir.ops.reshape import Reshape
from luciole.ir.quantization import affine_of
from luciole.ir.unknown_op import UnknownOp
from luciole.ir.value import Producer, Shape, Value
from luciole.schema.enums import TensorType

COMPUTING = frozenset(
    ("AddV2", "BatchMatMulV2", "BroadcastTo", "Erf", "MatMul", "MaxPoolWithArgmax", "SplitV")
)
"""CUSTOM operators that old converters of TensorFlow write: they do nothing but compute."""


def become(graph: Graph, op: Op, new: Op) -> None:
    """Replace an operator by a new one, which computes its results: these keep their tensors and
    all that is known of them. What only the old one needed goes.
    """
    results, op.results = op.results, ()
    for value in results:
        value.producer = None
    graph.insert_before(op, new, results=results)
    _remove(graph, op)


def alias(graph: Graph, op: Op, value: Value) -> bool:
    """Replace an operator's one result, for all that read it, by another value of the same type and
    numbers, and remove the operator. Returns False, and changes nothing, where an output of the
    graph would lose its tensor: what its caller knows stays.
    """
    result = op.output
    if not interchangeable(result, value) or value.is_variable:
        return False
    if not result.is_output:
        result.replace_with(value)
        _remove(graph, op)
        return True
    maker = value.producer
    if maker is None or value.is_output:
        return False
    _hand_over(graph, op, value, maker)
    return True


def _hand_over(graph: Graph, op: Op, value: Value, maker: Producer) -> None:
    """Make the maker of a value compute the result of another operator, an output, instead."""
    result, op.results = op.output, ()
    value.replace_with(result)
    result.producer, value.producer = maker, None
    maker.op.results = tuple(result if v is value else v for v in maker.op.results)
    _remove(graph, op)
    graph.remove_value(value)


def interchangeable(one: Value, other: Value) -> bool:
    """Return whether two tensors hold elements of the same type that stand for the same numbers, in
    as many axes of the same extents.
    """
    if one.dtype != other.dtype or one.shape != other.shape or one.has_open_rank:
        return False
    return same_numbers(one, other)


def same_numbers(one: Value, other: Value) -> bool:
    """Return whether equal elements of two tensors stand for equal numbers."""
    first, second = affine_of(one), affine_of(other)
    if first is None or second is None:
        return first is second
    return first.same_numbers(second)


def put(graph: Graph, before: Op, new: Op, name: str, like: Value | None = None) -> Value:
    """Add an operator with one result in front of another one; the result has the scales of a value
    that it is ``like``.
    """
    result = graph.insert_before(before, new, graph.unique_name(name)).output
    if like is not None:
        result.quantization = like.quantization
    return result


def constant(
    graph: Graph, name: str, numbers: ArrayLike, dtype: type[np.generic] = np.float32
) -> Value:
    """Add a constant under a name that nothing else has."""
    array = np.ascontiguousarray(np.asarray(numbers, dtype))
    return graph.add_constant(graph.unique_name(name), array.reshape(np.shape(numbers)))


def vector(graph: Graph, name: str, numbers: Iterable[int]) -> Value:
    """Add a constant vector of int32: a shape, an order of axes."""
    return constant(graph, name, list(numbers), np.int32)


def copy_like(graph: Graph, value: Value, array: Array) -> Value:
    """Add a constant with other contents in place of one that others may go on reading."""
    name = graph.unique_name(f"{value.name}/fused")
    return graph.add_constant(name, np.ascontiguousarray(array, np.float32).reshape(array.shape))


def reshape_to(graph: Graph, op: Op, tensor: Value) -> bool:
    """Replace an operator by a RESHAPE of a tensor to the shape of its one result; returns False,
    and changes nothing, where more than one extent of that is not known.
    """
    result = op.output
    if result.has_open_rank or tensor.has_open_rank or not _is_sayable(result.shape):
        return False
    extents = [-1 if extent is None else extent for extent in result.shape]
    shape = vector(graph, f"{result.name}/shape", extents)
    become(graph, op, Reshape(tensor, shape, new_shape=tuple(extents)))
    return True


def _is_sayable(shape: Shape) -> bool:
    """Return whether a vector with one -1 at the most says a shape."""
    return shape.count(None) <= 1 and not (None in shape and 0 in shape)


def is_float(*values: Value | None) -> bool:
    """Return whether all values hold float32."""
    return all(v is not None and v.dtype == TensorType.FLOAT32 for v in values)


def is_private(value: Value) -> bool:
    """Return whether one operand of one operator is all that a computed value is for."""
    return value.producer is not None and len(value.users) == 1 and not value.is_output


def reader_of(value: Value) -> Op | None:
    """Find the one operator that reads a value, None where there are more, or it is an output."""
    return value.users[0].op if len(value.users) == 1 and not value.is_output else None


def _remove(graph: Graph, op: Op) -> None:
    """Remove an operator, and what only it needed."""
    waiting = [op]
    while waiting:
        gone = waiting.pop()
        if gone.graph is not graph:
            continue
        makers = [v.producer.op for v in gone.operands if v is not None and v.producer is not None]
        graph.remove(gone)
        waiting += [maker for maker in makers if is_idle(maker)]


def is_idle(op: Op) -> bool:
    """Return whether nothing reads an operator's results, and it does nothing but compute them."""
    computes = not op.stateful or (isinstance(op, UnknownOp) and op.custom in COMPUTING)
    if not computes or any(v is not None and v.is_variable for v in op.operands):
        return False
    return not any(value.users or value.is_output for value in op.results)
