"""Let operators do what CUSTOM of old converters says."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.broadcast import BroadcastTo
from luciole.ir.rewriting.edits import become
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.unknown_op import UnknownOp


@rewrite(UnknownOp)
def resolve_former_customop(graph: Graph, op: UnknownOp) -> bool:
    """CUSTOM(BroadcastTo, x, shape) -> BROADCAST_TO(x, shape)."""
    values = [value for value in op.inputs if value is not None]
    if op.custom != "BroadcastTo" or len(values) != 2:
        return False
    become(graph, op, BroadcastTo(*values))
    return True
