"""Let RELU6 cut off at 0 and 6."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.activations import Relu0To1, Relu6, ReluN1To1
from luciole.ir.ops.elementwise_binary import Maximum, Minimum
from luciole.ir.rewriting.clamps import clamped
from luciole.ir.rewriting.passes import rewrite


@rewrite(Maximum, Minimum, makes=(Relu6, ReluN1To1, Relu0To1))
def transform_min_max_to_relu6(graph: Graph, op: Maximum | Minimum) -> bool:
    """MINIMUM(MAXIMUM(x, 0), 6) -> RELU6(x), either first; -1 and 1 likewise, 0 and 1 as well."""
    return clamped(graph, op, Maximum, Minimum)
