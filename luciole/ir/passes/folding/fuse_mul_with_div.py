"""Join constants of products and quotients."""

from __future__ import annotations

import numpy as np

from luciole.ir.dtypes import Array
from luciole.ir.graph import Graph
from luciole.ir.ops.elementwise_binary import Div, Mul
from luciole.ir.rewriting.edits import become, constant, is_float, is_private
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.patterns import constant_of, is_plain, made_by, with_constant


@rewrite(Mul, Div)
def fuse_mul_with_div(graph: Graph, op: Mul | Div) -> bool:
    """DIV(a, MUL(x, b)) -> DIV(a / b, x), MUL(DIV(a, x), b) -> DIV(a b, x), DIV(MUL(x, a), b) ->
    MUL(x, a / b): a, b are constants.
    """
    outer = with_constant(op)
    if outer is None or not is_float(op.output) or not is_private(outer[0]):
        return False
    number, (value, divides) = constant_of(outer[1]), (outer[0], isinstance(op, Div))
    inner = made_by(value, Mul if divides else Div)
    if number is None or inner is None or not is_plain(inner):
        return False
    pair = with_constant(inner)
    factor = None if pair is None else constant_of(pair[1])
    if pair is None or factor is None or (not divides and pair[0] is not inner.y):
        return False
    scales = divides and value is op.x
    joined = _joined(factor, number, True) if scales else _joined(number, factor, divides)
    if joined is None or op.output.shape != pair[0].shape:
        return False
    top = constant(graph, f"{op.name}/{'factor' if scales else 'dividend'}", joined)
    operands = (pair[0], top) if scales else (top, pair[0])
    become(graph, op, (Mul if scales else Div)(*operands, activation=op.activation))
    return True


def _joined(number: Array, factor: Array, divides: bool) -> Array | None:
    """Compute the joined constant, None where that is no number."""
    with np.errstate(all="ignore"):
        wide = number.astype(np.float64)
        joined = (wide / factor if divides else wide * factor).astype(np.float32)
    return joined if np.isfinite(joined).all() and joined.all() else None
