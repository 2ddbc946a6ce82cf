"""Spell powers as products and roots."""

from __future__ import annotations

from collections.abc import Callable

from luciole.ir.graph import Graph
from luciole.ir.op import Op
from luciole.ir.ops.elementwise_binary import Mul, Pow
from luciole.ir.ops.elementwise_unary import Rsqrt, Sqrt
from luciole.ir.rewriting.edits import become, is_float
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.patterns import number_of
from luciole.ir.value import Value


@rewrite(Pow)
def transform_pow_to_products_and_roots(graph: Graph, op: Pow) -> bool:
    """POW(x, 2) -> MUL(x, x), POW(x, 0.5) -> SQRT(x), POW(x, -0.5) -> RSQRT(x)."""
    new = _spelled(op.x, number_of(op.y)) if is_float(op.x) else None
    if new is None or op.output.shape != op.x.shape:
        return False
    become(graph, op, new(op.x))
    return True


def _spelled(value: Value, exponent: float | None) -> Callable[[Value], Op] | None:
    if value.is_constant:
        return None
    kinds: dict[float, Callable[[Value], Op]] = {0.5: Sqrt, -0.5: Rsqrt, 2.0: lambda x: Mul(x, x)}
    return None if exponent is None else kinds.get(exponent)
