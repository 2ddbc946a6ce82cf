"""Compute RESHAPE beforehand."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.reshape import Reshape
from luciole.ir.passes.folding.fold_constants import fold_kind
from luciole.ir.rewriting.passes import Evaluate, graph_pass


@graph_pass(on_request=True)
def fold_reshape(graph: Graph, evaluate: Evaluate) -> bool:
    """RESHAPE(constants) -> a constant of any size."""
    return fold_kind(graph, evaluate, Reshape)
