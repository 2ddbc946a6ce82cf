"""Drop orders of axes that change none."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.transpose import Transpose
from luciole.ir.rewriting.edits import alias, reshape_to
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.patterns import Order, made_by, order_of
from luciole.ir.rewriting.turn_reshapes import turn_reshape


@rewrite(Transpose)
def remove_unnecessary_transpose(graph: Graph, op: Transpose) -> bool:
    """TRANSPOSE(x, in order) -> x, TRANSPOSE(RESHAPE(TRANSPOSE(x))) -> RESHAPE(x)."""
    order, before = order_of(op), made_by(op.a, Transpose)
    if order is None:
        return False
    if list(order) == sorted(order):
        return alias(graph, op, op.a)
    if before is not None:
        return _meet(graph, op, before, order)
    between = made_by(op.a, Reshape)
    return between is not None and turn_reshape(graph, between)


def _meet(graph: Graph, op: Transpose, before: Transpose, order: Order) -> bool:
    """Drop two that turn each other round, but for axes of extent 1: a RESHAPE moves these."""
    inner = order_of(before)
    both = () if inner is None else tuple(inner[axis] for axis in order)
    if inner is None or before.a.has_open_rank:
        return False
    if list(both) == sorted(both):
        return alias(graph, op, before.a)
    moved = [axis for axis in both if before.a.shape[axis] != 1]
    reshape = made_by(before.a, Reshape)
    source = before.a if reshape is None else reshape.tensor
    return moved == sorted(moved) and reshape_to(graph, op, source)
