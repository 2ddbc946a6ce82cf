"""Compute once what is computed twice."""

from __future__ import annotations

from collections.abc import Hashable

from luciole.ir.graph import Graph
from luciole.ir.op import Op
from luciole.ir.quantization import affine_of
from luciole.ir.rewriting.edits import alias, reshape_to
from luciole.ir.unknown_op import UnknownOp
from luciole.ir.value import Value


def common_subexpression_elimination(graph: Graph) -> bool:
    """ADD(x, y), ADD(x, y) -> one ADD(x, y): operators that are alike and read the same.

    Where both results are outputs, the second one becomes a RESHAPE of the first: a copy.
    """
    first: dict[Hashable, Op] = {}
    changed = False
    for op in list(graph.ops):
        key = _described(op)
        if key is None or op.graph is None:
            continue
        other = first.setdefault(key, op)
        if other is not op:
            changed |= alias(graph, op, other.output) or _copied(graph, op, other)
    return changed


def _copied(graph: Graph, op: Op, other: Op) -> bool:
    """Copy the other result to that of an operator, where that one is an output of its own."""
    return not op.reshapes and op.output.is_output and reshape_to(graph, op, other.output)


def _described(op: Op) -> Hashable | None:
    """List all that an operator's result depends on; None for one that does more than compute."""
    variable = any(v is not None and v.is_variable for v in op.operands)
    if isinstance(op, UnknownOp) or op.stateful or variable or len(op.results) != 1:
        return None
    attributes = tuple(sorted((name, repr(held)) for name, held in op.attributes().items()))
    operands = tuple(_told_apart(value) for value in op.operands)
    return type(op), attributes, operands, op.output.dtype, op.output.shape, _grid(op.output)


def _grid(value: Value) -> Hashable | None:
    """Describe scales and zero points: QUANTIZE of one tensor by two scales gives two tensors."""
    affine = affine_of(value)
    if affine is None:
        return None
    return affine.scale.tobytes(), affine.zero_point.tobytes(), affine.axis


def _told_apart(value: Value | None) -> Hashable:
    """Take small constants for equal where their contents are: vectors of axes and shapes."""
    data = value.data if value is not None and value.is_constant else None
    if value is None or data is None or data.size > _SMALL or value.quantization is not None:
        return value
    return value.dtype, value.dims, data.tobytes()


_SMALL = 16
"""Elements of constants whose contents are compared; larger ones are the same tensor or none."""
