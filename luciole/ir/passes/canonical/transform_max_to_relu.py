"""Let RELU cut off at 0."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.activations import Relu
from luciole.ir.ops.elementwise_binary import Maximum
from luciole.ir.rewriting.edits import become, is_float
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.patterns import is_compared, number_of, with_constant


@rewrite(Maximum)
def transform_max_to_relu(graph: Graph, op: Maximum) -> bool:
    """MAXIMUM(x, 0) -> RELU(x), unless a comparison reads it."""
    pair = with_constant(op)
    if pair is None or not is_float(op.x) or number_of(pair[1]) != 0:
        return False
    if op.output.shape != pair[0].shape or is_compared(op.output):
        return False
    become(graph, op, Relu(pair[0]))
    return True
