"""Operators that call other graphs."""

from __future__ import annotations

from luciole.exporters.onnx.building import Building
from luciole.exporters.onnx.nodes import Body, Term
from luciole.exporters.onnx.rules import rule
from luciole.ir import Graph, TensorType
from luciole.ir.ops.control_flow import Call, Delegating, If, StablehloComposite, While


@rule(Call, StablehloComposite)
def call(k: Building, op: Delegating) -> list[Term]:
    """Write the called graph's operators in the operator's place."""
    arguments = [k.of(value) for value in op.given_operands().values()]
    return [k.add("Identity", term) for term in k.run(op.whole, arguments)]


@rule(If)
def if_(k: Building, op: If) -> list[Term]:
    """Have both graphs read the operator's operands from outside: an ONNX branch has no inputs."""
    arguments = [k.of(value) for value in op.inputs]
    branches = [_branch(k, graph, arguments) for graph in (op.then_graph, op.else_graph)]
    condition = k.of(op.condition)
    if op.condition.shape != ():
        condition = k.add("Squeeze", condition)
    names = ("then_branch", "else_branch")
    bodies: dict[str, Body] = dict(zip(names, branches, strict=True))
    return k.add_all("If", len(op.results), condition, **bodies)


def _branch(k: Building, graph: Graph, arguments: list[Term]) -> Body:
    inner = k.inside(graph.name or "branch")
    terms = inner.run(graph, arguments)
    for value, term in zip(graph.outputs, terms, strict=True):
        inner.body.outputs.append((inner.add("Identity", term), value.dtype, None))
    return inner.body


@rule(While)
def while_(k: Building, op: While) -> list[Term]:
    """Compute the condition before the loop, and at the end of each round for the next one."""
    arguments = [k.of(value) for value in op.inputs]
    (go_on,) = k.run(op.condition_graph, arguments)
    inner = k.inside(op.body_graph.name or "body")
    inner.body.inputs += [
        (Term("round"), TensorType.INT64, ()),
        (Term("go_on"), TensorType.BOOL, ()),
    ]
    states = [Term(value.name) for value in op.inputs]
    for term, value in zip(states, op.inputs, strict=True):
        inner.body.inputs.append((term, value.dtype, None))
    after = inner.run(op.body_graph, states)
    (again,) = inner.run(op.condition_graph, after)
    again = inner.add("Squeeze", again) if _has_axes(op) else inner.add("Identity", again)
    inner.body.outputs.append((again, TensorType.BOOL, ()))
    for term, value in zip(after, op.inputs, strict=True):
        inner.body.outputs.append((inner.add("Identity", term), value.dtype, None))
    first = k.add("Squeeze", go_on) if _has_axes(op) else go_on
    return k.add_all("Loop", len(op.results), None, first, *arguments, body=inner.body)


def _has_axes(op: While) -> bool:
    return op.condition_graph.outputs[0].shape != ()
