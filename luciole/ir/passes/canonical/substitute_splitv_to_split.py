"""Let SPLIT make equal parts."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.split import Split
from luciole.ir.ops.split_v import SplitV
from luciole.ir.rewriting.edits import become
from luciole.ir.rewriting.passes import rewrite


@rewrite(SplitV)
def substitute_splitv_to_split(graph: Graph, op: SplitV) -> bool:
    """SPLIT_V(x) into equal parts -> SPLIT(x)."""
    shapes = {value.shape for value in op.results}
    if len(shapes) != 1 or any(None in shape for shape in shapes) or not op.split_dim.is_constant:
        return False
    become(graph, op, Split(op.split_dim, op.input, num_splits=len(op.results)))
    return True
