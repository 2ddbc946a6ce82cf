"""Let a RESHAPE add an axis."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.pack import Pack
from luciole.ir.rewriting.edits import reshape_to
from luciole.ir.rewriting.passes import rewrite


@rewrite(Pack)
def substitute_pack_to_reshape(graph: Graph, op: Pack) -> bool:
    """PACK(x) of one tensor -> RESHAPE(x)."""
    return len(op.inputs) == 1 and reshape_to(graph, op, op.inputs[0])
