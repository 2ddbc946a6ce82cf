"""Compute SHAPE beforehand."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.shape import Shape
from luciole.ir.passes.folding.fold_constants import fold_kind
from luciole.ir.rewriting.passes import Evaluate, graph_pass


@graph_pass(on_request=True)
def fold_shape(graph: Graph, evaluate: Evaluate) -> bool:
    """SHAPE(x) -> a constant of any size."""
    return fold_kind(graph, evaluate, Shape)
