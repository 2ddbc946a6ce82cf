"""Let a product of RSQRT divide by roots."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.elementwise_binary import Div, Mul
from luciole.ir.ops.elementwise_unary import Rsqrt, Sqrt
from luciole.ir.rewriting.edits import become, is_float, put
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.patterns import is_filled, is_plain, made_by
from luciole.ir.value import Value


@rewrite(Div)
def transform_sqrt_div_to_rsqrt_mul(graph: Graph, op: Div) -> bool:
    """DIV(x, SQRT(y)) -> MUL(x, RSQRT(y)), DIV(1, SQRT(y)) -> RSQRT(y)."""
    root = made_by(op.y, Sqrt)
    if root is None or not is_float(op.x, op.y) or not _only_divides(root.output):
        return False
    if is_filled(op.x, 1) and is_plain(op) and op.output.shape == root.output.shape:
        become(graph, op, Rsqrt(root.x))
        return True
    inverse = put(graph, op, Rsqrt(root.x), f"{root.name}/inverse")
    become(graph, op, Mul(op.x, inverse, activation=op.activation))
    return True


def _only_divides(root: Value) -> bool:
    """Return whether a root is nothing but a divisor, so that none is left."""
    divides = all(isinstance(use.op, Div) and use.slot == 1 for use in root.users)
    return divides and not root.is_output
