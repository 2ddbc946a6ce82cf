"""Dense layers and products of matrices."""

from __future__ import annotations

from luciole.exporters.onnx.building import Building
from luciole.exporters.onnx.errors import RefusedError
from luciole.exporters.onnx.nodes import Term
from luciole.exporters.onnx.operators.activations import activated
from luciole.exporters.onnx.operators.convolutions import bias_of
from luciole.exporters.onnx.rules import rule
from luciole.ir.ops.batch_matmul import BatchMatMul
from luciole.ir.ops.embedding_lookup import EmbeddingLookup
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.schema.enums import FullyConnectedOptionsWeightsFormat


@rule(FullyConnected)
def fully_connected(k: Building, op: FullyConnected) -> Term:
    """Multiply rows by Gemm, whose weights are [o, n] as in the model; more axes by MatMul."""
    if op.weights_format != FullyConnectedOptionsWeightsFormat.DEFAULT:
        raise RefusedError(f"weights in the format {op.weights_format.name}")
    n, rank = op.weights.dims[1], len(op.input.shape)
    if op.keep_num_dims and rank != 2:
        y = k.add("MatMul", k.of(op.input), k.weights(op.weights, (1, 0)))
        y = y if op.bias is None else k.add("Add", y, _required(k, op))
    else:
        rows = rank == 2 and op.input.shape[-1] == n
        x = k.of(op.input) if rows else k.reshaped(op.input, -1, n)
        y = k.add("Gemm", x, k.of(op.weights), bias_of(k, op.bias), transB=1)
    return activated(k, y, op.activation)


def _required(k: Building, op: FullyConnected) -> Term:
    bias = bias_of(k, op.bias)
    assert bias is not None, "the caller saw one"
    return bias


@rule(BatchMatMul)
def batch_matmul(k: Building, op: BatchMatMul) -> Term:
    sides = []
    for value, turned in ((op.x, op.adjoint_lhs), (op.y, op.adjoint_rhs)):
        order = list(range(len(value.shape)))
        sides.append(
            k.weights(value, [*order[:-2], order[-1], order[-2]]) if turned else k.of(value)
        )
    return k.add("MatMul", *sides)


@rule(EmbeddingLookup)
def embedding_lookup(k: Building, op: EmbeddingLookup) -> Term:
    return k.add("Gather", k.of(op.value), k.of(op.lookup), axis=0)
