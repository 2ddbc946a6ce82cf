"""Take means of means at once."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.reduce import Mean
from luciole.ir.rewriting.edits import become, is_float, is_private, vector
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.patterns import axes_of, made_by


@rewrite(Mean)
def fuse_mean_with_mean(graph: Graph, op: Mean) -> bool:
    """MEAN(MEAN(x, axes), others) -> MEAN(x, axes and others)."""
    before = made_by(op.input, Mean)
    if before is None or not is_float(op.input) or not is_private(op.input):
        return False
    inner, outer = axes_of(before), axes_of(op)
    if inner is None or outer is None or before.keep_dims != op.keep_dims:
        return False
    left = [
        axis for axis in range(len(before.input.shape)) if before.keep_dims or axis not in inner
    ]
    both = sorted({*inner, *(left[axis] for axis in outer)})
    become(
        graph,
        op,
        Mean(before.input, vector(graph, f"{op.name}/axes", both), keep_dims=op.keep_dims),
    )
    return True
