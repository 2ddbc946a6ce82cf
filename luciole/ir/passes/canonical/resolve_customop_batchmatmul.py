"""Let BATCH_MATMUL do what CUSTOM(BatchMatMulV2) says."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.batch_matmul import BatchMatMul
from luciole.ir.rewriting.custom_options import flags_of
from luciole.ir.rewriting.edits import become, is_float
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.unknown_op import UnknownOp


@rewrite(UnknownOp)
def resolve_customop_batchmatmul(graph: Graph, op: UnknownOp) -> bool:
    """CUSTOM(BatchMatMulV2, x, y) -> BATCH_MATMUL(x, y)."""
    if op.custom != "BatchMatMulV2" or len(op.inputs) != 2 or not is_float(*op.inputs):
        return False
    flags = flags_of(op)
    if flags is None:
        return False
    x, y = (flags.get(name, False) for name in ("adj_x", "adj_y"))
    first, second = (value for value in op.inputs if value is not None)
    become(graph, op, BatchMatMul(first, second, adjoint_lhs=x, adjoint_rhs=y))
    return True
