"""Let a RESHAPE move axes of one element."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.transpose import Transpose
from luciole.ir.rewriting.edits import reshape_to
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.patterns import order_of


@rewrite(Transpose)
def substitute_transpose_to_reshape(graph: Graph, op: Transpose) -> bool:
    """TRANSPOSE(x) that moves only axes of extent 1 -> RESHAPE(x)."""
    order = order_of(op)
    if order is None or op.a.has_open_rank:
        return False
    kept = [axis for axis in order if op.a.shape[axis] != 1]
    return kept == sorted(kept) and len(kept) < len(order) and reshape_to(graph, op, op.a)
