"""Take means of what is before a TRANSPOSE."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.reduce import Mean
from luciole.ir.ops.transpose import Transpose
from luciole.ir.rewriting.edits import become, vector
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.patterns import axes_of, made_by, order_of


@rewrite(Mean)
def fuse_transpose_with_mean(graph: Graph, op: Mean) -> bool:
    """MEAN(TRANSPOSE(x), axes) -> MEAN(x, axes before), where other axes stay in their order."""
    before, axes = made_by(op.input, Transpose), axes_of(op)
    order = None if before is None else order_of(before)
    if before is None or order is None or axes is None or op.keep_dims:
        return False
    kept = [axis for place, axis in enumerate(order) if place not in axes]
    if kept != sorted(kept):
        return False
    moved = vector(graph, f"{op.name}/axes", sorted(order[axis] for axis in axes))
    become(graph, op, Mean(before.a, moved))
    return True
