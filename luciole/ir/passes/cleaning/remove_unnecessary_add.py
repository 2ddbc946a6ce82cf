"""Drop additions of 0."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.elementwise_binary import Add, Sub
from luciole.ir.rewriting.edits import alias, is_float
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.patterns import is_filled, is_plain, with_constant


@rewrite(Add, Sub)
def remove_unnecessary_add(graph: Graph, op: Add | Sub) -> bool:
    """ADD(x, 0) -> x, SUB(x, 0) -> x."""
    pair = with_constant(op)
    if pair is None or not is_plain(op) or not is_float(op.x):
        return False
    if isinstance(op, Sub) and op.x.is_constant:
        return False
    value, constant = pair
    return is_filled(constant, 0) and alias(graph, op, value)
