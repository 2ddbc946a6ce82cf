"""Let MUL divide by constants."""

from __future__ import annotations

import numpy as np

from luciole.ir.graph import Graph
from luciole.ir.ops.cast import Cast
from luciole.ir.ops.comparisons import Comparison
from luciole.ir.ops.elementwise_binary import Div, FloorDiv, FloorMod, Mul
from luciole.ir.ops.elementwise_unary import Ceil, Floor, Round, Sign
from luciole.ir.ops.quantize import Quantize
from luciole.ir.rewriting.edits import become, constant, is_float
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.patterns import constant_of


@rewrite(Div)
def replace_div_with_mul(graph: Graph, op: Div) -> bool:
    """DIV(x, c) -> MUL(x, 1 / c)."""
    divisor = constant_of(op.y)
    if divisor is None or op.x.is_constant or not is_float(op.x) or _is_told_apart(op):
        return False
    with np.errstate(all="ignore"):
        inverse = (1 / divisor.astype(np.float64)).astype(np.float32)
    if not (np.isfinite(inverse) & (np.abs(inverse) >= np.finfo(np.float32).tiny)).all():
        return False
    factor = constant(graph, f"{op.y.name}/inverse", inverse)
    become(graph, op, Mul(op.x, factor, activation=op.activation))
    return True


def _is_told_apart(op: Div) -> bool:
    """Return whether a quotient is rounded or compared: 9 / 3 is 3, 9 (1 / 3) is only near it."""
    return any(isinstance(use.op, _STEPS) for use in op.output.users)


_STEPS = (Cast, Ceil, Comparison, Floor, FloorDiv, FloorMod, Quantize, Round, Sign)
