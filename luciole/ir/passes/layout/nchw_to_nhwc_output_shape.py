"""Let outputs that are images have their channels last."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.rewriting.ends import turn_outputs
from luciole.ir.rewriting.passes import graph_pass


@graph_pass(on_request=True, at_last=True)
def nchw_to_nhwc_output_shape(graph: Graph) -> bool:
    """Output TRANSPOSE(x) to channels first -> output x with channels last.

    Names stay; signatures follow.
    """
    return turn_outputs(graph)
