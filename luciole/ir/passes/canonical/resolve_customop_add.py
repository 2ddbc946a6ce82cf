"""Let ADD do what CUSTOM(AddV2) says."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.rewriting.edits import become
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.unknown_op import UnknownOp
from luciole.ir.value import Value
from luciole.schema.enums import TensorType


@rewrite(UnknownOp)
def resolve_customop_add(graph: Graph, op: UnknownOp) -> bool:
    """CUSTOM(AddV2, x, y) -> ADD(x, y), also of CUSTOM(BroadcastTo), which ADD does itself."""
    if op.custom != "AddV2" or len(op.inputs) != 2 or op.output.dtype not in _TYPES:
        return False
    values = [value for value in op.inputs if value is not None]
    if len(values) != 2:
        return False
    x, y = (_before_stretching(value) for value in values)
    become(graph, op, Add(x, y))
    return True


_TYPES = (TensorType.FLOAT32, TensorType.INT32)
"""What ADD computes in every runtime."""


def _before_stretching(value: Value) -> Value:
    op = value.producer.op if value.producer is not None else None
    stretches = isinstance(op, UnknownOp) and op.custom == "BroadcastTo"
    source = op.inputs[0] if isinstance(op, UnknownOp) and stretches else None
    return value if source is None else source
