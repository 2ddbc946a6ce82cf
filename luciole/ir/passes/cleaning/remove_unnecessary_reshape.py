"""Drop changes to the shape that is there."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.expand_dims import ExpandDims
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.squeeze import Squeeze
from luciole.ir.rewriting.edits import alias
from luciole.ir.rewriting.passes import rewrite


@rewrite(Reshape, Squeeze, ExpandDims)
def remove_unnecessary_reshape(graph: Graph, op: Reshape | Squeeze | ExpandDims) -> bool:
    """RESHAPE(x) -> x, where the shape is that of x already."""
    value = op.operands[0]
    if value is None or value.shape.count(None) > 1:
        return False
    return alias(graph, op, value)
