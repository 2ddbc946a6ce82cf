"""Drop splits into one part."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.split import Split
from luciole.ir.ops.split_v import SplitV
from luciole.ir.rewriting.edits import alias
from luciole.ir.rewriting.passes import rewrite


@rewrite(Split, SplitV)
def remove_unnecessary_split(graph: Graph, op: Split | SplitV) -> bool:
    """SPLIT(x, 1 part) -> x."""
    return len(op.results) == 1 and alias(graph, op, op.input)
