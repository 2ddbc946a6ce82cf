"""Let a RESHAPE take axes out."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.squeeze import Squeeze
from luciole.ir.rewriting.edits import reshape_to
from luciole.ir.rewriting.passes import rewrite


@rewrite(Squeeze)
def substitute_squeeze_to_reshape(graph: Graph, op: Squeeze) -> bool:
    """SQUEEZE(x) -> RESHAPE(x), of axes that have one element: SQUEEZE refuses others."""
    shape = op.input.shape
    if any(shape[axis] != 1 for axis in op.squeeze_dims):
        return False
    return reshape_to(graph, op, op.input)
