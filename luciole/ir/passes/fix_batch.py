"""Fix the batch size of a graph."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.passes.canonical.infer_shapes import infer_shapes


def fix_batch(graph: Graph, batch: int) -> bool:
    """Give every input whose first extent is open ``batch`` there, and infer all other shapes.

    Raises ShapeError, naming the operator, when operands do not fit together.
    """
    changed = False
    for value in graph.inputs:
        if value.shape and value.shape[0] is None:
            value.shape = (batch, *value.shape[1:])
            changed = True
    return infer_shapes(graph) or changed
