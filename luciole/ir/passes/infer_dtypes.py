"""Give every result the element type that its operator's rule computes."""

from __future__ import annotations

from luciole.ir.graph import Graph


def infer_dtypes(graph: Graph) -> bool:
    """Infer all element types, in order."""
    changed = False
    for op in graph.ops:
        for value, dtype in zip(op.results, op.result_dtypes(), strict=True):
            changed |= value.dtype != dtype
            value.dtype = dtype
    return changed
