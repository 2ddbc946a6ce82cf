"""Drop repetitions that repeat nothing."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.broadcast import BroadcastTo
from luciole.ir.ops.tile import Tile
from luciole.ir.rewriting.edits import alias
from luciole.ir.rewriting.passes import rewrite


@rewrite(Tile, BroadcastTo)
def remove_unnecessary_tile(graph: Graph, op: Tile | BroadcastTo) -> bool:
    """TILE(x) -> x, BROADCAST_TO(x) -> x, where the shape is that of x already."""
    return None not in op.input.shape and alias(graph, op, op.input)
