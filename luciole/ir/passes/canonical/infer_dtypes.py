"""Give every result the element type that its operator's rule computes."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.rewriting.passes import graph_pass


@graph_pass(on_request=True)
def infer_dtypes(graph: Graph) -> bool:
    """Element types of the file -> those that the operators' rules compute, in order."""
    changed = False
    for op in graph.ops:
        for value, dtype in zip(op.results, op.result_dtypes(), strict=True):
            changed |= value.dtype != dtype
            value.dtype = dtype
    return changed
