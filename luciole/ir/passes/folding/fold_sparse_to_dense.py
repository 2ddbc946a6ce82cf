"""Compute SPARSE_TO_DENSE beforehand."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.sparse_to_dense import SparseToDense
from luciole.ir.passes.folding.fold_constants import fold_kind
from luciole.ir.rewriting.passes import Evaluate, graph_pass


@graph_pass(on_request=True)
def fold_sparse_to_dense(graph: Graph, evaluate: Evaluate) -> bool:
    """SPARSE_TO_DENSE(constants) -> a constant of any size."""
    return fold_kind(graph, evaluate, SparseToDense)
