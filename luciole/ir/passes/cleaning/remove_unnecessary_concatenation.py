"""Drop joints of one part."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.concatenation import Concatenation
from luciole.ir.rewriting.edits import alias
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.patterns import is_plain


@rewrite(Concatenation)
def remove_unnecessary_concatenation(graph: Graph, op: Concatenation) -> bool:
    """CONCATENATION(x) -> x."""
    return len(op.inputs) == 1 and is_plain(op) and alias(graph, op, op.inputs[0])
