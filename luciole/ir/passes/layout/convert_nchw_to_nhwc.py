"""Let networks with channels first have them last."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.passes.layout.sink_transposes import sink_transposes
from luciole.ir.rewriting.passes import graph_pass


@graph_pass(on_request=True)
def convert_nchw_to_nhwc(graph: Graph) -> bool:
    """TRANSPOSE on both sides of every layer -> TRANSPOSE at the ends of the network alone.

    That is what ``sink_transposes`` does for any order of axes.
    """
    return sink_transposes(graph)
