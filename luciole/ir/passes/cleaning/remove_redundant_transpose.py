"""Join orders of axes that follow each other."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.transpose import Transpose
from luciole.ir.rewriting.edits import alias, become, vector
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.patterns import made_by, order_of


@rewrite(Transpose)
def remove_redundant_transpose(graph: Graph, op: Transpose) -> bool:
    """TRANSPOSE(TRANSPOSE(x)) -> TRANSPOSE(x), or x where they turn each other round."""
    before, outer = made_by(op.a, Transpose), order_of(op)
    inner = None if before is None else order_of(before)
    if before is None or inner is None or outer is None:
        return False
    both = [inner[axis] for axis in outer]
    if both == sorted(both):
        return alias(graph, op, before.a)
    become(graph, op, Transpose(before.a, vector(graph, f"{op.name}/perm", both)))
    return True
