"""Compute GATHER beforehand."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.gather import Gather
from luciole.ir.passes.folding.fold_constants import fold_kind
from luciole.ir.rewriting.passes import Evaluate, graph_pass


@graph_pass(on_request=True)
def fold_gather(graph: Graph, evaluate: Evaluate) -> bool:
    """GATHER(constants) -> a constant of any size."""
    return fold_kind(graph, evaluate, Gather)
