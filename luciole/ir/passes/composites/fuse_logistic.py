"""Put LOGISTIC together, which reaches 0 where an exponential of its own would be infinite."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.activations import Logistic
from luciole.ir.ops.elementwise_binary import Div, Mul
from luciole.ir.ops.elementwise_unary import Exp
from luciole.ir.rewriting.algebra import ONE, Monomial, computed_from, equals, expand, monomial
from luciole.ir.rewriting.edits import become, is_float
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.patterns import is_plain, made_by, number_of
from luciole.ir.value import Value


@rewrite(Div, makes=(Logistic,))
def fuse_logistic(graph: Graph, op: Div) -> bool:
    """a / (1 + EXP(-x)) -> a LOGISTIC(x)."""
    x = _exponent(op.y) if is_float(op.output) else None
    if x is None or x.shape != op.y.shape:
        return False
    if number_of(op.x) == 1 and is_plain(op) and x.shape == op.output.shape:
        become(graph, op, Logistic(x))
        return True
    share = graph.insert_before(op, Logistic(x), graph.unique_name(f"{op.name}/logistic"))
    become(graph, op, Mul(op.x, share.output, activation=op.activation))
    return True


_NEAR = 6
"""Tensors that are looked at."""


def _exponent(divisor: Value) -> Value | None:
    """Find x where a value is 1 + EXP(-x)."""
    for power in computed_from(divisor, _NEAR):
        exponential = made_by(power, Exp)
        if exponential is not None and equals(expand(divisor, (power,)), _one_and(power)):
            near = list(computed_from(exponential.x, _NEAR))[1:]
            return next((x for x in near if _is_negated(exponential.x, x)), None)
    return None


def _one_and(value: Value) -> dict[Monomial, float]:
    return {ONE: 1.0, monomial(value): 1.0}


def _is_negated(value: Value, x: Value) -> bool:
    return equals(expand(value, (x,)), {monomial(x): -1.0})
