"""Let FULLY_CONNECTED do what CUSTOM(MatMul) says."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.transpose import Transpose
from luciole.ir.rewriting.custom_options import flags_of
from luciole.ir.rewriting.edits import become, is_float, put, vector
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.unknown_op import UnknownOp


@rewrite(UnknownOp)
def resolve_customop_matmul(graph: Graph, op: UnknownOp) -> bool:
    """CUSTOM(MatMul, x, y) -> FULLY_CONNECTED(x, y transposed)."""
    flags = flags_of(op) if op.custom == "MatMul" else None
    if flags is None or len(op.inputs) != 2 or not is_float(*op.inputs):
        return False
    x, y = (value for value in op.inputs if value is not None)
    if len(x.shape) != 2 or len(y.shape) != 2:
        return False
    perm = vector(graph, f"{op.name}/perm", [1, 0])
    if flags.get("transpose_a", False):
        x = put(graph, op, Transpose(x, perm), f"{op.name}/first")
    if not flags.get("transpose_b", False):
        y = put(graph, op, Transpose(y, perm), f"{op.name}/second")
    become(graph, op, FullyConnected(x, y))
    return True
