"""What a RELU behind a layer lets pass: only that is to be kept close."""

from __future__ import annotations

import numpy as np
import pytest

from luciole.ir import Graph, Model, Op
from luciole.ir.ops.activations import Relu, Relu6, ReluN1To1, Tanh
from luciole.ir.ops.elementwise_binary import Add
from luciole.lquantizer import Choice, Config, OutputAware, quantize_records
from luciole.lquantizer.network import walk
from luciole.lquantizer.network.branches import floors
from luciole.schema.enums import ActivationFunctionType
from tests.lquantizer.runs import error
from tests.networks import dense, random

Y = random(1, 7, 12)
BRANCH = random(2, 7, 12)


def layer(*behind: type[Op]) -> Op:
    """A dense layer with operators behind it, the last an output."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    op = dense(graph, graph.add_input("x", (1, 20)), (12, 20), "fc")
    value = op.output
    for number, kind in enumerate(behind):
        value = graph.append(kind(value), f"behind{number}").output
    graph.outputs = [value]
    return op


@pytest.mark.parametrize(("kind", "floor"), [(Relu, 0), (Relu6, 0), (ReluN1To1, -1)])
def test_a_relu_is_a_floor(kind: type[Op], floor: float) -> None:
    found = floors(layer(kind), Y)
    np.testing.assert_array_equal(found, np.full(Y.shape, floor))


@pytest.mark.parametrize("behind", [(), (Tanh,), (Tanh, Relu)])
def test_where_everything_passes_there_is_no_floor(behind: tuple[type[Op], ...]) -> None:
    assert floors(layer(*behind), Y) is None


def test_a_result_that_others_see_whole_has_no_floor() -> None:
    op = layer(Relu)
    assert op.graph is not None
    op.graph.outputs.append(op.output)
    assert floors(op, Y) is None


@pytest.mark.parametrize("fused", [True, False])
def test_behind_an_add_the_branch_moves_the_floor(fused: bool) -> None:
    op = layer()
    graph = op.graph
    assert graph is not None
    other = dense(graph, graph.inputs[0], (12, 20), "other", seed=5).output
    relu = ActivationFunctionType.RELU if fused else ActivationFunctionType.NONE
    total = graph.append(Add(op.output, other, activation=relu), "sum").output
    graph.outputs = [total if fused else graph.append(Relu(total), "cut").output]
    np.testing.assert_array_equal(floors(op, Y, BRANCH), -BRANCH)
    assert floors(op, Y) is None  # the branch is not what it will be


def negative() -> Model:
    """A layer whose results are mostly below 0, and a RELU."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    op = dense(graph, graph.add_input("x", (1, 20)), (16, 20), "fc1", seed=10)
    assert op.bias is not None
    op.bias.set_data(np.full(16, -0.7, np.float32))
    graph.outputs = [graph.append(Relu(op.output), "act1").output]
    return model


def test_the_fit_gains_by_what_a_relu_does_not_let_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    model, config = negative(), Config(Choice(1, 1))
    losses = []
    for kept in (True, False):
        if not kept:
            monkeypatch.setattr(walk, "floors", lambda op, outputs, branch: None)
        found = quantize_records(model, {"x": random(50, 600, 20)}, OutputAware(), config).model
        losses.append(error(model, found, "act1", random(60, 300, 20)))
    assert losses[0] < 0.97 * losses[1]
