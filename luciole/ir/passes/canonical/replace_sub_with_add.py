"""Let ADD take constants away."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.elementwise_binary import Add, Sub
from luciole.ir.rewriting.edits import become, constant, is_float
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.patterns import constant_of


@rewrite(Sub)
def replace_sub_with_add(graph: Graph, op: Sub) -> bool:
    """SUB(x, c) -> ADD(x, -c)."""
    number = constant_of(op.y)
    if number is None or op.x.is_constant or not is_float(op.x):
        return False
    negative = constant(graph, f"{op.y.name}/negative", -number)
    become(graph, op, Add(op.x, negative, activation=op.activation))
    return True
