"""Multiply matrices that are both computed by BATCH_MATMUL."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.op import Op
from luciole.ir.ops.activations import FUSED
from luciole.ir.ops.batch_matmul import BatchMatMul
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.reshape import Reshape
from luciole.ir.rewriting.edits import become, is_float, put, vector
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.value import Value
from luciole.schema.enums import ActivationFunctionType


@rewrite(FullyConnected, on_request=True)
def replace_non_const_fc_with_batch_matmul(graph: Graph, op: FullyConnected) -> bool:
    """FULLY_CONNECTED(x, computed w, b) -> ADD(BATCH_MATMUL(x, w transposed), b)."""
    computed = op.weights.producer is not None or op.weights.is_input
    if not computed or not is_float(op.input, op.weights) or op.activation not in _KNOWN:
        return False
    rows = _rows(graph, op)
    if rows is None:
        return False
    products: Op = BatchMatMul(rows, op.weights, adjoint_rhs=True)
    activation = op.activation
    if op.bias is not None and (activation in FUSED or activation == ActivationFunctionType.NONE):
        before = put(graph, op, products, f"{op.name}/products")
        products, activation = (
            Add(before, op.bias, activation=activation),
            ActivationFunctionType.NONE,
        )
    elif activation in FUSED:
        products = FUSED[activation](put(graph, op, products, f"{op.name}/products"))
    become(graph, op, products)
    return True


_KNOWN = {ActivationFunctionType.NONE, *FUSED}


def _rows(graph: Graph, op: FullyConnected) -> Value | None:
    """Return the operand of a dense layer with as many axes as its result, by a RESHAPE where it
    has others; None where extents are not known.
    """
    before, after = op.input.shape, op.output.shape
    if len(after) < 2 or before[:-1] == after[:-1]:
        return op.input if len(after) >= 2 else None
    rows = (*after[:-1], op.weights.shape[-1])
    if None in (*before, *rows):
        return None
    extents = tuple(extent or 0 for extent in rows)
    reshape = Reshape(op.input, vector(graph, f"{op.name}/shape", extents), new_shape=extents)
    return put(graph, op, reshape, f"{op.name}/rows")
