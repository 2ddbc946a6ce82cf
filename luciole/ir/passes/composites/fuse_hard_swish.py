"""Put HARD_SWISH together."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.activations import HardSwish, Relu6
from luciole.ir.ops.elementwise_binary import Add, Div, Mul
from luciole.ir.rewriting.algebra import ONE, computed_from, equals, expand, monomial
from luciole.ir.rewriting.edits import become, is_float
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.patterns import made_by
from luciole.ir.value import Value
from luciole.schema.enums import ActivationFunctionType


@rewrite(Mul, Div, makes=(HardSwish,))
def fuse_hard_swish(graph: Graph, op: Mul | Div) -> bool:
    """x RELU6(x + 3) / 6 -> HARD_SWISH(x)."""
    if not is_float(op.output):
        return False
    for cut in computed_from(op.output, _NEAR):
        x = _moved_by_3(cut)
        if x is None or x.shape != op.output.shape:
            continue
        if equals(expand(op.output, (x, cut)), {monomial(x, cut): 1 / 6}):
            become(graph, op, HardSwish(x))
            return True
    return False


_NEAR = 12
"""Tensors that are looked at."""


def _moved_by_3(cut: Value) -> Value | None:
    """Find x where a value is RELU6(x + 3), as one operator or as two."""
    unit, fused = made_by(cut, Relu6), made_by(cut, Add)
    if fused is not None and fused.activation == ActivationFunctionType.RELU6:
        values = [(v, w) for v, w in ((fused.x, fused.y), (fused.y, fused.x)) if w.is_constant]
        return next((v for v, w in values if equals(expand(w), {ONE: 3.0})), None)
    if unit is None:
        return None
    near = list(computed_from(unit.features, _NEAR))[1:]
    sums = ((x, {monomial(x): 1.0, ONE: 3.0}) for x in near)
    return next((x for x, sum_ in sums if equals(expand(unit.features, (x,)), sum_)), None)
