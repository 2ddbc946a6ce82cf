"""Compile IF, STABLEHLO_CASE and CALL: one step of a plan that runs one of some graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from luciole.interpreter.loops import Called, PlanBody, all_alike, called
from luciole.ir import Array, Graph, Value
from luciole.ir.ops.control_flow import Delegating, If, StablehloCase
from luciole.kernels.core.allocation import placed
from luciole.kernels.core.budget import Budget
from luciole.kernels.core.choices import Branch, choice
from luciole.kernels.core.contract import Built
from luciole.kernels.core.loops import Part
from luciole.kernels.core.reasons import Declined

Choice = If | StablehloCase | Delegating


def chosen(op: Choice, arrays: Mapping[Value, Array], plan_body: PlanBody, budget: Budget) -> Built:
    """Make the step of a choice whose operands and results have places; None where a graph is not
    compiled throughout, has variables, or returns other types or shapes.
    """
    number = _number(op, arrays)
    if number.size != 1:
        return Declined("its condition is not one number")
    operands, results = ([arrays[v] for v in values] for values in (op.passed, op.results))
    branches = []
    for graph in _graphs(op):
        body = called(graph, operands, plan_body)
        if not isinstance(body, Called):
            return body
        if not all_alike(body.outputs, results):
            return None
        read = [n for n in range(len(operands)) if body.reads(n)]
        first = [Part(operands[n], body.inputs[n]) for n in read]
        branches.append(Branch(body.steps, first, list(map(Part, body.outputs, results))))
    return choice(number, branches, budget)


def _number(op: Choice, arrays: Mapping[Value, Array]) -> Array:
    """Find the array with the number of the graph to run: where there is one graph, that is 0."""
    if isinstance(op, Delegating):
        return placed(np.zeros(1, np.int32))
    return arrays[op.condition if isinstance(op, If) else op.index]


def _graphs(op: Choice) -> Sequence[Graph]:
    """List the graphs from number 0 on; a condition that is false is 0."""
    if isinstance(op, If):
        return op.else_graph, op.then_graph
    return op.branches if isinstance(op, StablehloCase) else (op.whole,)
