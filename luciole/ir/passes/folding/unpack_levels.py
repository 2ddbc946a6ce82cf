"""Decode weights of learned levels beforehand."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.levelsdecode import LevelsDecode
from luciole.ir.passes.folding.fold_constants import fold_kind
from luciole.ir.rewriting.passes import Evaluate, graph_pass


@graph_pass(on_request=True)
def unpack_levels(graph: Graph, evaluate: Evaluate) -> bool:
    """LevelsDecode(codes) -> a constant of any size: for runtimes that do not know the operator."""
    return fold_kind(graph, evaluate, LevelsDecode)
