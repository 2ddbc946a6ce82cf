"""An activation moves into the operator before it, where that changes no number."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from luciole.interpreter import Interpreter
from luciole.ir import Array, Graph, Model, Op, Signature, TensorType, UnknownOp, Value
from luciole.ir.ops.activations import Elu, Relu, Relu6, ReluN1To1, Tanh
from luciole.ir.ops.concatenation import Concatenation
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.elementwise_binary import Add, Mul, Sub
from luciole.ir.ops.elementwise_unary import Abs
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.lq_fully_connected import LQFullyConnected
from luciole.ir.ops.pool_2d import AveragePool2D, MaxPool2D
from luciole.ir.ops.transpose_conv import TransposeConv
from luciole.ir.passes.folding.fuse_activation_function import fuse_activation_function
from luciole.ir.quantization import Affine
from luciole.ir.text.listing import show
from luciole.schema.enums import ActivationFunctionType, Padding
from luciole.schema.tables import QuantizationParameters
from tests.samples import floats

FUSED: dict[Callable[[Value], Op], ActivationFunctionType] = {
    Relu: ActivationFunctionType.RELU,
    Relu6: ActivationFunctionType.RELU6,
    ReluN1To1: ActivationFunctionType.RELU_N1_TO_1,
}
every_activation = pytest.mark.parametrize("activation", FUSED, ids=lambda cls: cls.__name__)


def numbers(*shape: int) -> Array:
    return np.random.default_rng(3).normal(0, 4, shape).astype(np.float32)


def conv(graph: Graph, x: Value) -> Op:
    return Conv2D(x, graph.add_constant("f", numbers(3, 2, 2, 2)), stride_w=1, stride_h=1)


def depthwise(graph: Graph, x: Value) -> Op:
    f = graph.add_constant("f", numbers(1, 2, 2, 2))
    return DepthwiseConv2D(x, f, stride_w=1, stride_h=1, depth_multiplier=1)


def dense(graph: Graph, x: Value) -> Op:
    return FullyConnected(x, graph.add_constant("w", numbers(3, 2)), keep_num_dims=True)


def average(graph: Graph, x: Value) -> Op:
    return AveragePool2D(x, filter_width=2, filter_height=2, stride_w=1, stride_h=1)


def maximum(graph: Graph, x: Value) -> Op:
    return MaxPool2D(x, filter_width=2, filter_height=2, stride_w=1, stride_h=1)


def add(graph: Graph, x: Value) -> Op:
    return Add(x, x)


def subtract(graph: Graph, x: Value) -> Op:
    return Sub(x, graph.add_constant("c", numbers(2)))


def multiply(graph: Graph, x: Value) -> Op:
    return Mul(x, graph.add_constant("c", numbers(2)))


Layer = Callable[[Graph, Value], Op]
LAYERS: tuple[Layer, ...] = (
    *(conv, depthwise, dense, average, maximum),
    *(add, subtract, multiply),
)


def before_and_after(layer: Layer, activation: Callable[[Value], Op]) -> Model:
    """x -> layer 'inner' -> activation 'y', with a signature."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (1, 4, 4, 2))
    inner = graph.append(layer(graph, x), "inner").output
    y = graph.append(activation(inner), "y").output
    graph.outputs = [y]
    model.signatures.append(Signature("serve", graph, [("x", x)], [("out", y)]))
    return model


def test_the_graph_before_and_after() -> None:
    model = before_and_after(conv, Relu)
    assert show(model.graph) == (
        "graph 'main'(%0: float32[1,4,4,2] 'x') -> (%3)\n"
        "%1: float32[3,2,2,2] = constant 'f'\n"
        "%2: float32[1,4,4,3] = CONV_2D(%0, %1) {stride_w=1, stride_h=1} 'inner'\n"
        "%3: float32[1,4,4,3] = RELU(%2) 'y'\n"
    )
    assert fuse_activation_function(model.graph) is True
    assert show(model.graph) == (
        "graph 'main'(%0: float32[1,4,4,2] 'x') -> (%2)\n"
        "%1: float32[3,2,2,2] = constant 'f'\n"
        "%2: float32[1,4,4,3] = CONV_2D(%0, %1) {stride_w=1, stride_h=1, activation=RELU} 'y'\n"
    )
    assert model.signatures[0].outputs == [("out", model.graph.outputs[0])]
    assert fuse_activation_function(model.graph) is False


@every_activation
@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.__name__)
def test_numbers_stay(layer: Layer, activation: Callable[[Value], Op]) -> None:
    model = before_and_after(layer, activation)
    x = numbers(1, 4, 4, 2)
    before = Interpreter(model.clone()).run(x)["y"]
    assert fuse_activation_function(model.graph) is True
    (op,) = model.graph.ops
    assert op.attributes()["activation"] is FUSED[activation]
    np.testing.assert_array_equal(Interpreter(model).run(x)["y"], before)


def test_tanh_is_fused_into_learned_layers_only() -> None:
    model = before_and_after(add, Tanh)
    assert fuse_activation_function(model.graph) is False
    graph = Graph("main")
    x = graph.add_input("x", (None, 32))
    scales = graph.add_constant("s", np.ones(1, np.float32))
    learned = LQFullyConnected(
        x,
        scales,
        graph.add_constant("w", np.ones((2, 1), np.float32)),
        graph.add_constant("b", np.ones((2, 1, 1), np.int32)),
        hidden_size=32,
    )
    graph.append(learned, "y")
    graph.outputs = [graph.append(Tanh(learned.output), "z").output]
    assert fuse_activation_function(graph) is True
    assert learned.activation is ActivationFunctionType.TANH
    assert [(op.kind, op.name) for op in graph.ops] == [("LQ_FULLY_CONNECTED", "z")]


def test_several_activations_are_fused_in_one_run() -> None:
    model = before_and_after(add, Relu)
    graph = model.graph
    second = graph.append(Add(graph.outputs[0], graph.inputs[0]), "second")
    graph.outputs = [graph.append(Relu6(second.output), "z").output]
    assert fuse_activation_function(graph) is True
    assert [(op.kind, op.name) for op in graph.ops] == [("ADD", "y"), ("ADD", "z")]


def test_only_the_first_of_two_activations_is_fused() -> None:
    model = before_and_after(add, Relu)
    graph = model.graph
    graph.outputs = [graph.append(Relu6(graph.outputs[0]), "z").output]
    x = numbers(1, 4, 4, 2)
    before = Interpreter(model.clone()).run(x)["z"]
    assert fuse_activation_function(graph) is True
    assert [op.kind for op in graph.ops] == ["ADD", "RELU6"]
    assert fuse_activation_function(graph) is False
    np.testing.assert_array_equal(Interpreter(model).run(x)["z"], before)


def test_the_activation_brings_its_quantization() -> None:
    model = before_and_after(add, Relu)
    parameters = QuantizationParameters(scale=floats(0.5))
    model.graph.outputs[0].quantization = parameters
    assert fuse_activation_function(model.graph) is True
    assert model.graph.outputs[0].quantization is parameters


# ------------------------------------------------------------------------------------- guards
def assert_unchanged(graph: Graph) -> None:
    before = show(graph)
    assert fuse_activation_function(graph) is False
    assert show(graph) == before


def test_not_where_another_operator_sees_the_result() -> None:
    graph = before_and_after(add, Relu).graph
    graph.append(Abs(graph.ops[0].output), "other")
    assert_unchanged(graph)


def test_not_where_integers_are_rounded_between() -> None:
    """ONE's files have a scale of its own between a layer and its activation."""
    for scales, fused in (((0.5, 0.25), False), ((0.5, 0.5), True)):
        graph = before_and_after(add, Relu).graph
        for op, scale in zip(graph.ops, scales, strict=True):
            op.output.dtype = TensorType.UINT8
            op.output.quantization = Affine.single(scale, 3, TensorType.UINT8).table()
        if fused:
            assert fuse_activation_function(graph) is True
        else:
            assert_unchanged(graph)


def test_not_where_the_caller_sees_the_result() -> None:
    graph = before_and_after(add, Relu).graph
    graph.outputs.append(graph.ops[0].output)
    assert_unchanged(graph)


@pytest.mark.parametrize("taken", [a for a in ActivationFunctionType if a])
def test_not_where_there_is_an_activation(taken: ActivationFunctionType) -> None:
    graph = before_and_after(add, Relu).graph
    graph.ops[0].activation = taken  # type: ignore[attr-defined]  # ADD has one
    assert_unchanged(graph)


def test_not_another_activation() -> None:
    assert_unchanged(before_and_after(add, Elu).graph)


def test_not_into_an_operator_without_activation() -> None:
    assert_unchanged(before_and_after(lambda graph, x: Abs(x), Relu).graph)


def test_not_into_concatenation() -> None:
    layer = before_and_after(lambda graph, x: Concatenation((x, x), axis=3), Relu)
    assert_unchanged(layer.graph)


def test_not_into_transposed_convolution() -> None:
    def layer(graph: Graph, x: Value) -> Op:
        sizes = graph.add_constant("sizes", np.array([1, 4, 4, 3], np.int32))
        f = graph.add_constant("f", numbers(3, 2, 2, 2))
        return TransposeConv(sizes, f, x, padding=Padding.SAME, stride_w=1, stride_h=1)

    assert_unchanged(before_and_after(layer, Relu).graph)


def test_not_into_an_unknown_operator_or_an_input() -> None:
    graph = Graph("main")
    x = graph.add_input("x", (2,))
    unknown = UnknownOp(32, [x], custom_code="Mine")
    graph.append(unknown, results=[graph.add_value(Value("u", TensorType.FLOAT32, (2,)))])
    graph.outputs = [
        graph.append(Relu(v), f"y{i}").output for i, v in enumerate((unknown.output, x))
    ]
    assert_unchanged(graph)
