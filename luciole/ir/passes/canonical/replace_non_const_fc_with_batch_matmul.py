"""Multiply matrices that are both computed by BATCH_MATMUL."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.op import Op
from luciole.ir.ops.activations import FUSED
from luciole.ir.ops.batch_matmul import BatchMatMul
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.rewriting.edits import become, is_float, put
from luciole.ir.rewriting.passes import rewrite
from luciole.schema.enums import ActivationFunctionType


@rewrite(FullyConnected, on_request=True)
def replace_non_const_fc_with_batch_matmul(graph: Graph, op: FullyConnected) -> bool:
    """FULLY_CONNECTED(x, computed w, b) -> ADD(BATCH_MATMUL(x, w transposed), b)."""
    computed = op.weights.producer is not None or op.weights.is_input
    fits = (
        len(op.input.shape) == len(op.output.shape) >= 2
        and op.input.shape[:-1] == op.output.shape[:-1]
    )
    if not computed or not fits or not is_float(op.input, op.weights):
        return False
    products: Op = BatchMatMul(op.input, op.weights, adjoint_rhs=True)
    activation = op.activation
    if op.bias is not None and (activation in FUSED or activation == ActivationFunctionType.NONE):
        before = put(graph, op, products, f"{op.name}/products")
        products, activation = (
            Add(before, op.bias, activation=activation),
            ActivationFunctionType.NONE,
        )
    elif activation in FUSED:
        products = FUSED[activation](put(graph, op, products, f"{op.name}/products"))
        activation = ActivationFunctionType.NONE
    if activation != ActivationFunctionType.NONE:
        return False
    become(graph, op, products)
    return True
