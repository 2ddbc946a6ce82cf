"""Take the inverse of a root at once."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.elementwise_binary import Div
from luciole.ir.ops.elementwise_unary import Rsqrt, Sqrt
from luciole.ir.rewriting.edits import become, is_float
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.patterns import is_filled, is_plain, made_by


@rewrite(Div)
def fuse_rsqrt(graph: Graph, op: Div) -> bool:
    """DIV(1, SQRT(x)) -> RSQRT(x)."""
    root = made_by(op.y, Sqrt)
    inverse = root is not None and is_float(op.y) and is_filled(op.x, 1) and is_plain(op)
    if root is None or not inverse or op.output.shape != root.output.shape:
        return False
    become(graph, op, Rsqrt(root.x))
    return True
