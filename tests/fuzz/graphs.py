"""Graphs that a random operator may call."""

from __future__ import annotations

import numpy as np

from luciole.ir import Graph, Model, TensorType, Value


def called_graph(rng: np.random.Generator, model: Model, caller: Graph, role: str) -> Graph:
    """A graph that takes what the caller's operator is given and returns it, or says false.

    Some take something else, or are the caller itself: neither must do harm.
    """
    if rng.random() < 0.05:
        return caller
    graph = model.add_graph(Graph(role))
    skipped = 1 if role in ("then_graph", "else_graph", "then_branch", "else_branch") else 0
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
