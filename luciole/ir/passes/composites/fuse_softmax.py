"""Put SOFTMAX together."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.elementwise_binary import Div, Sub
from luciole.ir.ops.elementwise_unary import Exp
from luciole.ir.ops.reduce import ReduceMax, Sum
from luciole.ir.ops.softmax import Softmax
from luciole.ir.rewriting.edits import become, is_float
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.patterns import axes_of, is_plain, made_by
from luciole.ir.value import Value


@rewrite(Div, makes=(Softmax,))
def fuse_softmax(graph: Graph, op: Div) -> bool:
    """DIV(e, SUM(e)), e = EXP(SUB(x, REDUCE_MAX(x))) -> SOFTMAX(x), along the last axis."""
    powers, total = made_by(op.x, Exp), made_by(op.y, Sum)
    if powers is None or total is None or total.input is not op.x or not is_plain(op):
        return False
    if not is_float(op.output) or not _is_along_last(total):
        return False
    logits = _without_largest(powers.x)
    if logits.shape != op.output.shape:
        return False
    become(graph, op, Softmax(logits, beta=1.0))
    return True


def _is_along_last(op: Sum | ReduceMax) -> bool:
    return op.keep_dims and axes_of(op) == (len(op.input.shape) - 1,)


def _without_largest(value: Value) -> Value:
    """Return the value from which the largest element is taken away, itself where none is."""
    below = made_by(value, Sub)
    largest = None if below is None or not is_plain(below) else made_by(below.y, ReduceMax)
    if below is None or largest is None or largest.input is not below.x:
        return value
    return below.x if _is_along_last(largest) else value
