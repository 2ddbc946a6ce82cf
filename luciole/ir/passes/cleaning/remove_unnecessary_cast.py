"""Drop conversions to the type that is there."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.cast import Cast
from luciole.ir.rewriting.edits import alias
from luciole.ir.rewriting.passes import rewrite


@rewrite(Cast)
def remove_unnecessary_cast(graph: Graph, op: Cast) -> bool:
    """CAST(x) -> x, where both have one element type."""
    return alias(graph, op, op.x)
