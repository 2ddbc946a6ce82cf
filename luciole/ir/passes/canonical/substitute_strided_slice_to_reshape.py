"""Let a RESHAPE take out axes of one element."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.strided_slice import StridedSlice
from luciole.ir.rewriting.edits import reshape_to
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.patterns import integers_of
from luciole.ir.value import element_count


@rewrite(StridedSlice)
def substitute_strided_slice_to_reshape(graph: Graph, op: StridedSlice) -> bool:
    """STRIDED_SLICE(x) of all elements -> RESHAPE(x)."""
    shapes, strides = (op.input.shape, op.output.shape), integers_of(op.strides)
    if strides is None or any(None in shape for shape in shapes) or op.input.has_open_rank:
        return False
    counts = {element_count(value.dims) for value in (op.input, op.output)}
    turned = any(stride < 0 for stride in strides)
    return len(counts) == 1 and not turned and reshape_to(graph, op, op.input)
