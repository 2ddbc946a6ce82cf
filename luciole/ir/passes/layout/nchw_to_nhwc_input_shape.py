"""Let inputs that are images have their channels last."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.rewriting.ends import turn_inputs
from luciole.ir.rewriting.passes import graph_pass


@graph_pass(on_request=True, at_last=True)
def nchw_to_nhwc_input_shape(graph: Graph) -> bool:
    """TRANSPOSE(input with channels first) -> input with channels last.

    Names stay; signatures follow.
    """
    return turn_inputs(graph)
