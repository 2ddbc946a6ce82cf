"""Spell SOFTMAX out."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.elementwise_binary import Div, Mul, Sub
from luciole.ir.ops.elementwise_unary import Exp
from luciole.ir.ops.reduce import ReduceMax, Sum
from luciole.ir.ops.softmax import Softmax
from luciole.ir.rewriting.edits import become, constant, is_float, put, vector
from luciole.ir.rewriting.passes import rewrite


@rewrite(Softmax, on_request=True)
def decompose_softmax(graph: Graph, op: Softmax) -> bool:
    """SOFTMAX(x) -> DIV(e, SUM(e)), e = EXP(SUB(x, REDUCE_MAX(x))), for targets without SOFTMAX."""
    if not is_float(op.logits):
        return False
    name, last = op.name, vector(graph, f"{op.name}/last", [-1])
    largest = put(graph, op, ReduceMax(op.logits, last, keep_dims=True), f"{name}/largest")
    below = put(graph, op, Sub(op.logits, largest), f"{name}/below")
    if op.beta != 1:
        beta = constant(graph, f"{name}/beta", op.beta)
        below = put(graph, op, Mul(below, beta), f"{name}/scaled")
    powers = put(graph, op, Exp(below), f"{name}/powers")
    total = put(graph, op, Sum(powers, last, keep_dims=True), f"{name}/total")
    become(graph, op, Div(powers, total))
    return True
