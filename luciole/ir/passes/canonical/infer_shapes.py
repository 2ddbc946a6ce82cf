"""Give every result the shape that its operator's rule computes."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.infer import infer_op, open_ranks


def infer_shapes(graph: Graph) -> bool:
    """Shapes of the file -> those that the operators' rules compute, in order.

    An extent that the rule cannot know keeps what the file says. Raises ShapeError, naming the
    operator, when operands do not fit together.
    """
    before = [value.shape for value in graph.values]
    with open_ranks(graph):
        for op in graph.ops:
            infer_op(op, declared=True)
    return before != [value.shape for value in graph.values]
