"""Drop multiplications by 1."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.elementwise_binary import Mul
from luciole.ir.rewriting.edits import alias, is_float
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.patterns import is_filled, is_plain, with_constant


@rewrite(Mul)
def remove_unnecessary_mul(graph: Graph, op: Mul) -> bool:
    """MUL(x, 1) -> x."""
    pair = with_constant(op)
    if pair is None or not is_plain(op) or not is_float(op.x):
        return False
    value, constant = pair
    return is_filled(constant, 1) and alias(graph, op, value)
