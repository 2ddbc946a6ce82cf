"""Drop slices of everything."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.strided_slice import StridedSlice
from luciole.ir.rewriting.edits import alias
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.patterns import integers_of


@rewrite(StridedSlice)
def remove_unnecessary_strided_slice(graph: Graph, op: StridedSlice) -> bool:
    """STRIDED_SLICE(x) -> x, where it takes all of x in its order."""
    strides = integers_of(op.strides)
    forward = strides is not None and all(stride == 1 for stride in strides)
    if not forward or op.new_axis_mask or op.shrink_axis_mask or None in op.input.shape:
        return False
    return alias(graph, op, op.input)
