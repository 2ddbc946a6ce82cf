"""Drop divisions by 1."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.elementwise_binary import Div
from luciole.ir.rewriting.edits import alias, is_float
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.patterns import is_filled, is_plain


@rewrite(Div)
def remove_unnecessary_div(graph: Graph, op: Div) -> bool:
    """DIV(x, 1) -> x."""
    neutral = is_float(op.x) and is_filled(op.y, 1)
    return neutral and is_plain(op) and alias(graph, op, op.x)
