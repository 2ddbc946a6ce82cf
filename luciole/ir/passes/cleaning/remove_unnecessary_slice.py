"""Drop slices of everything."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.slice import Slice
from luciole.ir.rewriting.edits import alias
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.patterns import integers_of


@rewrite(Slice)
def remove_unnecessary_slice(graph: Graph, op: Slice) -> bool:
    """SLICE(x) -> x, where it takes all of x."""
    begin = integers_of(op.begin)
    if begin is None or any(begin) or None in op.input.shape:
        return False
    return alias(graph, op, op.input)
