"""Compute once what is computed twice."""

from __future__ import annotations

from collections.abc import Hashable

from luciole.ir.graph import Graph
from luciole.ir.op import Op
from luciole.ir.rewriting.edits import alias, reshape_to, same_numbers
from luciole.ir.unknown_op import UnknownOp
from luciole.ir.value import Value


def common_subexpression_elimination(graph: Graph) -> bool:
    """ADD(x, y), ADD(x, y) -> one ADD(x, y): operators that are alike and read the same.

    Where both results are outputs, the second one becomes a RESHAPE of the first: a copy. Integers
    of two scales stay apart: QUANTIZE of one tensor gives others by each.
    """
    first: dict[Hashable, list[Op]] = {}
    changed = False
    for op in list(graph.ops):
        key = _described(op)
        if key is None or op.graph is None:
            continue
        alike = first.setdefault(key, [])
        other = next((one for one in alike if same_numbers(one.output, op.output)), None)
        if other is None:
            alike.append(op)
        else:
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
    return type(op), attributes, operands, op.output.dtype, op.output.shape


def _told_apart(value: Value | None) -> Hashable:
    """Take small constants for equal where their contents are: vectors of axes and shapes."""
    data = value.data if value is not None and value.is_constant else None
    if value is None or data is None or data.size > _SMALL or value.quantization is not None:
        return value
    return value.dtype, value.dims, data.tobytes()


_SMALL = 16
"""Elements of constants whose contents are compared; larger ones are the same tensor or none."""
