"""Let MUL divide by constants."""

from __future__ import annotations

import numpy as np

from luciole.ir.graph import Graph
from luciole.ir.ops.elementwise_binary import Div, Mul
from luciole.ir.rewriting.edits import become, constant, is_float
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.patterns import constant_of


@rewrite(Div)
def replace_div_with_mul(graph: Graph, op: Div) -> bool:
    """DIV(x, c) -> MUL(x, 1 / c)."""
    divisor = constant_of(op.y)
    if divisor is None or op.x.is_constant or not is_float(op.x):
        return False
    with np.errstate(all="ignore"):
        inverse = (1 / divisor.astype(np.float64)).astype(np.float32)
    if not (np.isfinite(inverse) & (np.abs(inverse) >= np.finfo(np.float32).tiny)).all():
        return False
    factor = constant(graph, f"{op.y.name}/inverse", inverse)
    become(graph, op, Mul(op.x, factor, activation=op.activation))
    return True
