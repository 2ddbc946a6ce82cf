"""Compute DEPTHWISE_CONV_2D beforehand."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.passes.folding.fold_constants import fold_kind
from luciole.ir.rewriting.passes import Evaluate, graph_pass


@graph_pass(on_request=True)
def fold_dwconv(graph: Graph, evaluate: Evaluate) -> bool:
    """DEPTHWISE_CONV_2D(constants) -> a constant of any size."""
    return fold_kind(graph, evaluate, DepthwiseConv2D)
