"""Let RELU6 cut off at 0 and 6."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.activations import Relu, Relu0To1, Relu6
from luciole.ir.ops.elementwise_binary import Minimum
from luciole.ir.rewriting.clamps import clamped
from luciole.ir.rewriting.passes import rewrite


@rewrite(Relu, Minimum, makes=(Relu6, Relu0To1))
def transform_min_relu_to_relu6(graph: Graph, op: Relu | Minimum) -> bool:
    """RELU(MINIMUM(x, 6)) -> RELU6(x), MINIMUM(RELU(x), 6) -> RELU6(x); 1 likewise."""
    return clamped(graph, op, Relu, Minimum)
