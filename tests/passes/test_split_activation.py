"""A fused activation becomes an operator of its own, which changes no number."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from luciole.interpreter import Interpreter
from luciole.ir import Array, Graph, Model, Op, Signature, Value
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.elementwise_unary import Abs
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.passes.folding.fuse_activation_function import fuse_activation_function
from luciole.ir.passes.split_activation import split_activation
from luciole.ir.text.listing import show
from luciole.schema.enums import ActivationFunctionType
from luciole.schema.tables import QuantizationParameters
from tests.samples import floats

SPLIT = {
    ActivationFunctionType.RELU: "RELU",
    ActivationFunctionType.RELU6: "RELU6",
    ActivationFunctionType.RELU_N1_TO_1: "RELU_N1_TO_1",
}
Layer = Callable[[Graph, Value], Op]


def numbers(*shape: int) -> Array:
    return np.random.default_rng(3).normal(0, 4, shape).astype(np.float32)


def conv(graph: Graph, x: Value) -> Op:
    return Conv2D(x, graph.add_constant("f", numbers(2, 2, 2, 2)), stride_w=1, stride_h=1)


def dense(graph: Graph, x: Value) -> Op:
    return FullyConnected(x, graph.add_constant("w", numbers(2, 2)), keep_num_dims=True)


def add(graph: Graph, x: Value) -> Op:
    return Add(x, x)


def fused(layer: Layer, activation: ActivationFunctionType) -> Model:
    """x -> layer 'y' with an activation, with a signature."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (1, 4, 4, 2))
    op = graph.append(layer(graph, x), "y")
    op.activation = activation  # type: ignore[attr-defined]  # these have one
    graph.outputs = [op.output]
    model.signatures.append(Signature("serve", graph, [("x", x)], [("out", op.output)]))
    return model


every_activation = pytest.mark.parametrize("activation", SPLIT, ids=lambda a: a.name)
every_layer = pytest.mark.parametrize("layer", [conv, dense, add], ids=lambda f: f.__name__)


def test_before_and_after() -> None:
    model = fused(add, ActivationFunctionType.RELU6)
    graph = model.graph
    graph.append(Abs(graph.outputs[0]), "z")
    assert show(graph) == BEFORE
    assert split_activation(graph, graph.ops[0]) is True
    assert show(graph) == AFTER
    assert model.signatures[0].outputs == [("out", graph.outputs[0])]


BEFORE = """\
graph 'main'(%0: float32[1,4,4,2] 'x') -> (%1)
%1: float32[1,4,4,2] = ADD(%0, %0) {activation=RELU6} 'y'
%2: float32[1,4,4,2] = ABS(%1) 'z'
"""
AFTER = """\
graph 'main'(%0: float32[1,4,4,2] 'x') -> (%3)
%1: float32[1,4,4,2] = ADD(%0, %0) 'y/linear'
%3: float32[1,4,4,2] = RELU6(%1) 'y'
%2: float32[1,4,4,2] = ABS(%3) 'z'
"""


@every_activation
@every_layer
def test_numbers_stay(layer: Layer, activation: ActivationFunctionType) -> None:
    model = fused(layer, activation)
    x = numbers(1, 4, 4, 2)
    before = Interpreter(model.clone()).run(x)["y"]
    assert split_activation(model.graph, model.graph.ops[0]) is True
    assert [op.kind for op in model.graph.ops][1] == SPLIT[activation]
    assert model.graph.ops[0].attributes()["activation"] is ActivationFunctionType.NONE
    found = Interpreter(model).run(x)
    assert list(found) == ["y"]
    np.testing.assert_array_equal(found["y"], before)


@every_activation
@every_layer
def test_fusing_again_gives_the_model_back(
    layer: Layer, activation: ActivationFunctionType
) -> None:
    model = fused(layer, activation)
    parameters = QuantizationParameters(scale=floats(0.5))
    model.graph.outputs[0].quantization = parameters
    before = show(model.graph)
    assert split_activation(model.graph, model.graph.ops[0]) is True
    assert model.graph.ops[0].output.quantization is None
    assert model.graph.outputs[0].quantization is parameters
    assert show(model.graph) != before
    assert fuse_activation_function(model.graph) is True
    assert show(model.graph) == before
    assert model.graph.outputs[0].quantization is parameters
    assert model.signatures[0].outputs == [("out", model.graph.outputs[0])]


def test_tanh_is_split_off_too() -> None:
    """LiteRT's kernels ignore a TANH in a dense layer; the learned layers take it back."""
    graph = fused(dense, ActivationFunctionType.TANH).graph
    assert split_activation(graph, graph.ops[0]) is True
    assert [(op.kind, op.name) for op in graph.ops] == [
        ("FULLY_CONNECTED", "y/linear"),
        ("TANH", "y"),
    ]


def test_every_user_sees_the_activation() -> None:
    graph = fused(add, ActivationFunctionType.RELU).graph
    y = graph.outputs[0]
    graph.append(Add(y, y), "twice")
    graph.append(Abs(y), "other")
    graph.outputs = [*(op.output for op in graph.ops[1:]), y, y]
    assert split_activation(graph, graph.ops[0]) is True
    activation = graph.ops[1].output
    assert [user.op.name for user in y.users] == ["y"]
    assert [(user.op.name, user.slot) for user in activation.users] == [
        ("twice", 0),
        ("twice", 1),
        ("other", 0),
    ]
    assert graph.outputs[2:] == [activation, activation]


def test_the_new_name_is_free() -> None:
    graph = fused(add, ActivationFunctionType.RELU).graph
    graph.add_constant("y/linear", numbers(1))
    assert split_activation(graph, graph.ops[0]) is True
    assert [op.name for op in graph.ops] == ["y/linear_1", "y"]


@pytest.mark.parametrize(
    "activation", [ActivationFunctionType.NONE, ActivationFunctionType.SIGN_BIT]
)
def test_nothing_to_split(activation: ActivationFunctionType) -> None:
    graph = fused(add, activation).graph
    before = show(graph)
    assert split_activation(graph, graph.ops[0]) is False
    assert show(graph) == before


def test_an_operator_without_activation_stays() -> None:
    graph = Graph("main")
    graph.outputs = [graph.append(Abs(graph.add_input("x", (2,))), "y").output]
    assert split_activation(graph, graph.ops[0]) is False
    assert [op.kind for op in graph.ops] == ["ABS"]
