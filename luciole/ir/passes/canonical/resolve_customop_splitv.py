"""Let SPLIT_V do what CUSTOM(SplitV) says."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.split_v import SplitV
from luciole.ir.rewriting.edits import become
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.unknown_op import UnknownOp


@rewrite(UnknownOp)
def resolve_customop_splitv(graph: Graph, op: UnknownOp) -> bool:
    """CUSTOM(SplitV, x, sizes, axis) -> SPLIT_V(x, sizes, axis)."""
    values = [value for value in op.inputs if value is not None]
    if op.custom != "SplitV" or len(values) != 3:
        return False
    x, sizes, axis = values
    become(graph, op, SplitV(x, sizes, axis, num_splits=len(op.results)))
    return True
