"""Fold an addition into the dense layer behind it."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.rewriting.fronts import row_in_front
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.patterns import is_plain, made_by
from luciole.ir.rewriting.scaling import is_plain_layer, shift_layer


@rewrite(FullyConnected)
def fuse_add_to_fullyconnected_bias(graph: Graph, op: FullyConnected) -> bool:
    """FULLY_CONNECTED(ADD(x, a), w, b) -> FULLY_CONNECTED(x, w, b + w a)."""
    add = made_by(op.input, Add)
    row = row_in_front(op, add) if add is not None and is_plain(add) else None
    weights = op.weights.data
    if row is None or weights is None or not is_plain_layer(op):
        return False
    value, shift = row
    shift_layer(graph, op, (weights.astype("f8") @ shift).astype("f4"))
    op.set_operand(0, value)
    return True
