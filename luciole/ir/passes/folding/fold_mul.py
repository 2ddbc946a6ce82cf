"""Compute MUL beforehand."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.elementwise_binary import Mul
from luciole.ir.passes.folding.fold_constants import fold_kind
from luciole.ir.rewriting.passes import Evaluate, graph_pass


@graph_pass(on_request=True)
def fold_mul(graph: Graph, evaluate: Evaluate) -> bool:
    """MUL(constants) -> a constant of any size."""
    return fold_kind(graph, evaluate, Mul)
