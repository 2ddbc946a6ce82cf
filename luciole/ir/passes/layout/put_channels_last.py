"""Let images that a graph takes and gives have their channels last."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.passes import run_passes
from luciole.ir.passes.layout.sink_transposes import sink_transposes
from luciole.ir.rewriting.ends import turn_inputs, turn_outputs
from luciole.ir.rewriting.passes import graph_pass


@graph_pass(on_request=True)
def put_channels_last(graph: Graph) -> bool:
    """Inputs and outputs with channels first -> with channels last.

    Inputs that only a TRANSPOSE to channels last reads get that order of axes, and outputs that one
    to channels first makes the order before it. Names stay; signatures follow.
    """
    changes = [turn_inputs(graph), turn_outputs(graph)]
    if any(changes):
        run_passes(graph, (sink_transposes,))
    return any(changes)
