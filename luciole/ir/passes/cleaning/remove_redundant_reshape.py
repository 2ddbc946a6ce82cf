"""Join changes of shape that follow each other."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.reshape import Reshape
from luciole.ir.rewriting.edits import reshape_to
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.patterns import made_by


@rewrite(Reshape)
def remove_redundant_reshape(graph: Graph, op: Reshape) -> bool:
    """RESHAPE(RESHAPE(x)) -> RESHAPE(x)."""
    before = made_by(op.tensor, Reshape)
    return before is not None and reshape_to(graph, op, before.tensor)
