"""Let a RESHAPE add an axis."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.expand_dims import ExpandDims
from luciole.ir.rewriting.edits import reshape_to
from luciole.ir.rewriting.passes import rewrite


@rewrite(ExpandDims)
def substitute_expand_dims_to_reshape(graph: Graph, op: ExpandDims) -> bool:
    """EXPAND_DIMS(x) -> RESHAPE(x)."""
    return op.axis.is_constant and reshape_to(graph, op, op.input)
