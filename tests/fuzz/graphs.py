"""Graphs that a random operator may call."""

from __future__ import annotations

import numpy as np

from luciole.ir import Graph, Model, TensorType, Value
from luciole.ir.fields import Field
from luciole.ir.ops.stablehlo_elementwise import StablehloAdd

BRANCHES = ("then_graph", "else_graph", "then_branch", "else_branch", "branches")
"""Roles of graphs that do not take the first operand."""


def called(
    rng: np.random.Generator, model: Model, caller: Graph, field: Field
) -> Graph | tuple[Graph, ...]:
    """What an attribute for graphs holds: one, or some."""
    if field.default is None:
        return called_graph(rng, model, caller, field.name)
    return tuple(called_graph(rng, model, caller, field.name) for _ in range(rng.integers(4)))


def _of_two_numbers(model: Model, caller: Graph, role: str, is_sum: bool) -> Graph:
    """A sum, or the second number."""
    graph = model.add_graph(Graph(role))
    dtype = caller.values[0].dtype
    numbers = [graph.add_input(f"{role}/{n}", (), dtype) for n in range(2)]
    graph.outputs = numbers[1:]
    if is_sum:
        graph.outputs = [graph.append(StablehloAdd(*numbers), f"{role}/sum").output]
    return graph


def called_graph(rng: np.random.Generator, model: Model, caller: Graph, role: str) -> Graph:
    """A graph that takes what the caller's operator is given and returns it, or says false.

    Some take something else, or are the caller itself: neither must do harm.
    """
    if rng.random() < 0.05:
        return caller
    if role in ("body", "update_computation") and rng.random() < 0.9:
        return _of_two_numbers(model, caller, role, rng.random() < 0.7)
    graph = model.add_graph(Graph(role))
    skipped = 1 if role in BRANCHES else 0
    for value in caller.values[skipped:]:
        copy = graph.add_input(f"{role}/{value.name}", value.shape)
        copy.dtype = value.dtype
        copy.quantization = value.quantization
    if role.startswith("cond"):
        answer = np.array(bool(rng.random() < 0.02))
        graph.outputs = [graph.add_constant(f"{role}/answer", answer)]
    elif role.startswith("init"):
        graph.inputs = []
    else:
        graph.outputs = list(graph.inputs)
    if rng.random() < 0.05:
        graph.outputs.append(graph.add_value(Value("extra", TensorType.FLOAT32, (1,))))
    return graph
