"""Fold a multiplication into the dense layer behind it."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.elementwise_binary import Mul
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.rewriting.fronts import row_in_front
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.patterns import is_plain, made_by
from luciole.ir.rewriting.scaling import is_plain_layer, set_weights


@rewrite(FullyConnected)
def fuse_mul_to_fullyconnected_weights(graph: Graph, op: FullyConnected) -> bool:
    """FULLY_CONNECTED(MUL(x, m), w, b) -> FULLY_CONNECTED(x, w m, b)."""
    mul = made_by(op.input, Mul)
    row = row_in_front(op, mul) if mul is not None and is_plain(mul) else None
    weights = op.weights.data
    if row is None or weights is None or not is_plain_layer(op):
        return False
    value, factor = row
    set_weights(graph, op, weights * factor)
    op.set_operand(0, value)
    return True
