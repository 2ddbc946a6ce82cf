"""Move TRANSPOSE towards the end of a network."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.passes.layout.sink_transposes import sink_transposes
from luciole.ir.rewriting.passes import graph_pass


@graph_pass(on_request=True)
def forward_transpose_op(graph: Graph) -> bool:
    """ABS(TRANSPOSE(x)) -> TRANSPOSE(ABS(x)): what ``sink_transposes`` does."""
    return sink_transposes(graph)
