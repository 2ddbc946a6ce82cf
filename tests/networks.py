"""Small float networks that several tests quantize and run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from luciole.ir import Array, Graph, Model, Shape, Signature, Value, learned_levels
from luciole.ir.ops.activations import Tanh
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.softmax import Softmax
from luciole.lquantizer.rewrite.learned_levels import nearest_codes


def random(seed: int, *shape: int) -> Array:
    """Normal float32 numbers."""
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def dense(
    graph: Graph,
    x: Value,
    sizes: tuple[int, int],
    name: str,
    bias: bool = True,
    seed: int = 0,
    keep_num_dims: bool = False,
) -> FullyConnected:
    """Append a dense layer of ``sizes`` (outputs, inputs) with random weights."""
    weights = graph.add_constant(
        f"{name}/weights", random(seed, *sizes) / np.float32(sizes[1] ** 0.5)
    )
    b = graph.add_constant(f"{name}/bias", random(seed + 1, sizes[0])) if bias else None
    op = FullyConnected(x, weights, b, keep_num_dims=keep_num_dims)
    graph.append(op, name)
    return op


def network(sizes: Sequence[int] = (20, 16, 4), shape: Shape | None = None) -> Model:
    """Dense layers fc1, fc2, ... with TANH operators act1, act2, ... between, and a signature."""
    model = Model(description="a small network")
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (1, sizes[0]) if shape is None else shape)
    for i in range(1, len(sizes)):
        x = dense(graph, x, (sizes[i], sizes[i - 1]), f"fc{i}", seed=10 * i).output
        if i < len(sizes) - 1:
            graph.append(Tanh(x), f"act{i}")
            x = graph.values[-1]
    graph.outputs = [x]
    model.signatures.append(Signature("serve", graph, [("a", graph.inputs[0])], [("b", x)]))
    return model


def steps(count: int = 6, classes: int = 4, softmax: bool = True) -> Model:
    """Two dense layers for each of some steps: x [1, count, 20] -> y [1, count, classes], with a
    SOFTMAX at the end.
    """
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (1, count, 20))
    first = dense(graph, x, (16, 20), "fc1", seed=10, keep_num_dims=True).output
    hidden = graph.append(Tanh(first), "act1").output
    y = dense(graph, hidden, (classes, 16), "fc2", seed=20, keep_num_dims=True).output
    graph.outputs = [graph.append(Softmax(y, beta=4.0), "y").output if softmax else y]
    return model


def two_inputs() -> Model:
    """fc_left(left) + fc_right(right) = sum."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    left = dense(graph, graph.add_input("left", (1, 6)), (5, 6), "fc_left")
    right = dense(graph, graph.add_input("right", (1, 9)), (5, 9), "fc_right", seed=7)
    graph.append(Add(left.output, right.output), "sum")
    graph.outputs = [graph.values[-1]]
    return model


def two_outputs() -> Model:
    """fc1(x) of 20 numbers, and fc2 of what TANH makes of that: both are outputs."""
    model = network((20, 16, 4))
    model.signatures.clear()
    model.graph.outputs = [model.graph.outputs[0], value_named(model, "fc1")]
    return model


def value_named(model: Model, name: str) -> Value:
    """The tensor of the main graph with a name."""
    (found,) = [v for v in model.graph.values if v.name == name]
    return found


def encode_weights(weights: Array, basis: Array) -> Array:
    """The packed sign planes [o, kw, words] of weights [o, n], each at its row's nearest level."""
    return learned_levels.planes(nearest_codes(weights, basis), basis.shape[1])
