"""The layer in which the error of a compared model grows most."""

from __future__ import annotations

import numpy as np
import pytest

from luciole.interpreter.growth import Growth, largest_growth
from luciole.ir import Graph, Model
from luciole.ir.ops.activations import Relu6, Tanh
from luciole.ir.ops.elementwise_unary import Abs
from luciole.ir.ops.split import Split
from tests.networks import dense, network


def test_noise_of_the_first_layer_is_not_what_grows_most() -> None:
    graph = network((20, 24, 24, 8)).graph
    errors = {"fc1": 0.08, "fc2": 0.3, "fc3": 0.32}
    assert largest_growth(graph, errors) == Growth("fc2", 0.08, 0.3)
    assert largest_growth(graph, {}) is None


def test_differences_that_the_activation_flattens_are_not_what_grows_most() -> None:
    graph = network().graph
    errors = {"fc1": 0.74, "act1": 0.007, "fc2": 0.05}
    assert largest_growth(graph, errors) == Growth("fc2", 0.007, 0.05)
    del errors["act1"]
    assert largest_growth(graph, errors) == Growth("fc1", 0.0, 0.74)


@pytest.mark.parametrize("alone", [True, False])
def test_activations_count_where_they_alone_read_a_result(alone: bool) -> None:
    graph = Model().add_graph(Graph("main"))
    gates = dense(graph, graph.add_input("x", (1, 4)), (6, 4), "gates").output
    axis = graph.add_constant("axis", np.array(1, np.int32))
    parts = graph.append(Split(axis, gates, num_splits=2), "left", "right").results
    names = ("cell", "gate")
    kinds = (Tanh, Relu6 if alone else Abs)
    graph.outputs = [
        graph.append(kind(part), name).output
        for kind, part, name in zip(kinds, parts, names, strict=True)
    ]
    errors = {"gates": 0.9, "left": 0.9, "right": 0.9, "cell": 0.1, "gate": 0.2}
    behind = Growth("gates", 0.0, 0.2, "gate") if alone else Growth("gates", 0.0, 0.9)
    assert largest_growth(graph, errors) == behind
