"""Graphs of a few operators, built in a line."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from luciole.ir import Array, Graph, Model, Op, TensorType, Value


def i32(number: int) -> Array:
    return np.array(number, np.int32)


def add(graph: Graph, op: Op) -> Value:
    return graph.append(op, graph.unique_name(f"{graph.name}/{op.kind}")).output


def constant(graph: Graph, array: Array) -> Value:
    return graph.add_constant(graph.unique_name("c"), array)


def with_inputs(model: Model, name: str, arrays: Sequence[Array]) -> Graph:
    graph = model.add_graph(Graph(name))
    types = {np.dtype(np.int32): TensorType.INT32, np.dtype(np.float32): TensorType.FLOAT32}
    for number, array in enumerate(arrays):
        graph.add_input(f"{name}/{number}", array.shape, types[array.dtype])
    return graph
