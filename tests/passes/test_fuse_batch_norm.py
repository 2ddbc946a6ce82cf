"""A scale and a shift per channel move into the layer before them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from luciole.interpreter import Interpreter
from luciole.ir import Array, Graph, Model, Op, Signature, TensorType, Value
from luciole.ir.ops.activations import Relu
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.elementwise_binary import Add, Mul
from luciole.ir.ops.elementwise_unary import Abs
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.transpose_conv import TransposeConv
from luciole.ir.passes import run_passes
from luciole.ir.passes.cleaning.remove_dead import remove_dead
from luciole.ir.passes.folding.fuse_batch_norm import fuse_batch_norm, fuse_biases
from luciole.ir.text.listing import show
from luciole.schema.enums import (
    ActivationFunctionType,
    FullyConnectedOptionsWeightsFormat,
    Padding,
)

RELU6 = ActivationFunctionType.RELU6
C = 4
"""Channels of every layer's result."""


def numbers(*shape: int, seed: int = 3) -> Array:
    return np.random.default_rng(seed).normal(0, 1, shape).astype(np.float32)


def bias(graph: Graph, wanted: bool) -> Value | None:
    return graph.add_constant("b", numbers(C, seed=4)) if wanted else None


def conv(graph: Graph, x: Value, with_bias: bool) -> Op:
    f = graph.add_constant("w", numbers(C, 2, 2, 2))
    return Conv2D(x, f, bias(graph, with_bias), stride_w=1, stride_h=1)


def depthwise(graph: Graph, x: Value, with_bias: bool) -> Op:
    f = graph.add_constant("w", numbers(1, 2, 2, C))
    b = bias(graph, with_bias)
    return DepthwiseConv2D(x, f, b, stride_w=1, stride_h=1, depth_multiplier=2)


def dense(graph: Graph, x: Value, with_bias: bool) -> Op:
    w = graph.add_constant("w", numbers(C, 2))
    return FullyConnected(x, w, bias(graph, with_bias), keep_num_dims=True)


Layer = Callable[[Graph, Value, bool], Op]
Follow = Callable[[Graph, Value], Op]
LAYERS: tuple[Layer, ...] = (conv, depthwise, dense)
every_layer = pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.__name__)


def mul(graph: Graph, y: Value) -> Op:
    return Mul(y, graph.add_constant("scale", numbers(C, seed=5)))


def add(graph: Graph, y: Value) -> Op:
    return Add(y, graph.add_constant("shift", numbers(C, seed=6)))


def build(layer: Layer, *follow: Follow, with_bias: bool = True) -> Model:
    """x -> layer 'inner' -> each of the operators that follow, 'f0', 'f1', ..."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (1, 3, 3, 2))
    y = graph.append(layer(graph, x, with_bias), "inner").output
    for i, make in enumerate(follow):
        y = graph.append(make(graph, y), f"f{i}").output
    graph.outputs = [y]
    model.signatures.append(Signature("serve", graph, [("x", x)], [("out", y)]))
    return model


def run(model: Model) -> Array:
    (result,) = Interpreter(model).run(numbers(1, 3, 3, 2, seed=7)).values()
    return result


def assert_fused(model: Model) -> None:
    """One operator is left, with the last one's name and the same numbers."""
    expected, name = run(model.clone()), model.graph.outputs[0].name
    assert run_passes(model.graph, [fuse_batch_norm]) is True
    (op,) = model.graph.ops
    assert op.name == name
    assert model.signatures[0].outputs == [("out", op.output)]
    np.testing.assert_allclose(run(model), expected, rtol=1e-5, atol=1e-5)


def assert_unchanged(model: Model) -> None:
    before = show(model.graph)
    assert fuse_batch_norm(model.graph) is False
    assert show(model.graph) == before


def test_the_graph_before_and_after() -> None:
    graph = Graph("main")
    w, scale, shift = (
        graph.add_constant(name, np.array(array, np.float32))
        for name, array in (("w", [[1, 2], [3, 4]]), ("scale", [10, 0.5]), ("shift", [7, -1]))
    )
    y = graph.append(FullyConnected(graph.add_input("x", (1, 2)), w), "dense").output
    y = graph.append(Mul(y, scale), "scaled").output
    graph.outputs = [graph.append(Add(y, shift), "y").output]
    assert show(graph) == (
        "graph 'main'(%3: float32[1,2] 'x') -> (%6)\n"
        "%0: float32[2,2] = constant [[1, 2], [3, 4]] 'w'\n"
        "%1: float32[2] = constant [10, 0.5] 'scale'\n"
        "%2: float32[2] = constant [7, -1] 'shift'\n"
        "%4: float32[1,2] = FULLY_CONNECTED(%3, %0, none) 'dense'\n"
        "%5: float32[1,2] = MUL(%4, %1) 'scaled'\n"
        "%6: float32[1,2] = ADD(%5, %2) 'y'\n"
    )
    assert run_passes(graph, [fuse_batch_norm, remove_dead]) is True
    assert show(graph) == (
        "graph 'main'(%1: float32[1,2] 'x') -> (%2)\n"
        "%0: float32[2] = constant [7, -1] 'shift'\n"
        "%3: float32[2,2] = constant [[10, 20], [1.5, 2]] 'w/fused'\n"
        "%2: float32[1,2] = FULLY_CONNECTED(%1, %3, %0) 'y'\n"
    )


@every_layer
def test_a_layer_without_bias_takes_one_alone(layer: Layer) -> None:
    model = build(layer, add, with_bias=False)
    expected = run(model)
    assert fuse_biases(model.graph) is True
    assert len(model.graph.ops) == 1
    np.testing.assert_allclose(run(model), expected, rtol=1e-5, atol=1e-5)
    for other in (build(layer, add, with_bias=True), build(layer, mul, with_bias=False)):
        assert fuse_biases(other.graph) is False


@every_layer
@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("follow", [(mul,), (add,), (mul, add), (add, mul)])
def test_numbers_stay(layer: Layer, with_bias: bool, follow: tuple[Follow, ...]) -> None:
    assert_fused(build(layer, *follow, with_bias=with_bias))


@every_layer
@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1, 1), (1, 1, 1, C), (1, C)])
def test_constants_of_every_shape_that_means_channels(layer: Layer, shape: tuple[int, ...]) -> None:
    def scale(graph: Graph, y: Value) -> Op:
        return Mul(graph.add_constant("scale", numbers(*shape, seed=8)), y)

    def shift(graph: Graph, y: Value) -> Op:
        return Add(graph.add_constant("shift", numbers(*shape, seed=9)), y)

    assert_fused(build(layer, scale, shift))


@every_layer
def test_the_activation_moves_along(layer: Layer) -> None:
    def last(graph: Graph, y: Value) -> Op:
        return Add(y, graph.add_constant("shift", numbers(C)), activation=RELU6)

    model = build(layer, mul, last)
    assert_fused(model)
    assert model.graph.ops[0].attributes()["activation"] is RELU6


def test_weights_that_others_use_keep_their_contents() -> None:
    model = build(conv, mul)
    graph = model.graph
    shared = graph.ops[0].operands[1]
    assert shared is not None
    graph.outputs.append(graph.append(Abs(shared), "seen").output)
    expected = Interpreter(model.clone()).run(numbers(1, 3, 3, 2))
    assert fuse_batch_norm(graph) is True
    after = Interpreter(model).run(numbers(1, 3, 3, 2))
    np.testing.assert_array_equal(after["seen"], expected["seen"])
    np.testing.assert_allclose(after["f0"], expected["f0"], rtol=1e-5, atol=1e-5)


# ------------------------------------------------------------------------------------- guards
def test_not_where_another_operator_sees_the_result() -> None:
    model = build(conv, mul)
    model.graph.append(Abs(model.graph.ops[0].output), "other")
    assert_unchanged(model)


def test_not_where_the_caller_sees_the_result() -> None:
    model = build(conv, mul)
    model.graph.outputs.append(model.graph.ops[0].output)
    assert_unchanged(model)


def test_not_after_an_activation() -> None:
    model = build(conv, mul)
    model.graph.ops[0].activation = RELU6  # type: ignore[attr-defined]  # a convolution has one
    assert_unchanged(model)


def test_not_where_the_factor_is_computed() -> None:
    def by_input(graph: Graph, y: Value) -> Op:
        return Mul(y, graph.add_input("scale", (C,)))

    def by_itself(graph: Graph, y: Value) -> Op:
        return Mul(y, y)

    assert_unchanged(build(conv, by_input))
    assert_unchanged(build(conv, by_itself))


@pytest.mark.parametrize("shape", [(3, 1), (3, 3, C), (1, 3, 3, 1), (1, 1, 1, 1, C), (2, 1, 1, C)])
def test_not_by_a_factor_that_is_not_one_per_channel(shape: tuple[int, ...]) -> None:
    assert_unchanged(
        build(conv, lambda graph, y: Mul(y, graph.add_constant("scale", numbers(*shape))))
    )


def test_not_by_a_factor_per_row_of_as_many_rows_as_channels() -> None:
    def three_channels(graph: Graph, x: Value, with_bias: bool) -> Op:
        return Conv2D(x, graph.add_constant("w", numbers(3, 2, 2, 2)), stride_w=1, stride_h=1)

    model = build(
        three_channels, lambda graph, y: Mul(y, graph.add_constant("rows", numbers(3, 1)))
    )
    assert model.graph.outputs[0].shape == (1, 3, 3, 3)
    assert_unchanged(model)


def test_not_where_a_factor_stretches_the_channels() -> None:
    def one_channel(graph: Graph, x: Value, with_bias: bool) -> Op:
        return Conv2D(x, graph.add_constant("w", numbers(1, 2, 2, 2)), stride_w=1, stride_h=1)

    assert_unchanged(build(one_channel, mul))


@pytest.mark.parametrize("slot", [1, 2])
def test_not_where_weights_or_bias_are_computed(slot: int) -> None:
    model = build(conv, mul)
    old = model.graph.ops[0].operands[slot]
    assert old is not None
    model.graph.ops[0].set_operand(slot, model.graph.add_input("given", old.shape))
    assert_unchanged(model)


def test_not_where_weights_are_no_floats() -> None:
    model = build(dense, mul)
    weights = np.ones((C, 2), np.int8)
    model.graph.ops[0].set_operand(1, model.graph.add_constant("int8", weights))
    assert_unchanged(model)


def test_not_where_weights_lie_in_another_order() -> None:
    model = build(dense, mul)
    shuffled = FullyConnectedOptionsWeightsFormat.SHUFFLED16x1FLOAT32
    model.graph.ops[0].weights_format = shuffled  # type: ignore[attr-defined]  # a dense layer has it
    assert_unchanged(model)


def test_not_where_the_channels_are_unknown() -> None:
    model = build(conv, lambda graph, y: Mul(y, graph.add_constant("scale", numbers(1))))
    for op in model.graph.ops:
        op.output.shape = (1, 3, 3, None)
    assert_unchanged(model)


def test_not_into_other_layers() -> None:
    def transposed(graph: Graph, x: Value, with_bias: bool) -> Op:
        sizes = graph.add_constant("sizes", np.array([1, 3, 3, C], np.int32))
        f = graph.add_constant("w", numbers(C, 2, 2, 2))
        return TransposeConv(sizes, f, x, padding=Padding.SAME, stride_w=1, stride_h=1)

    assert_unchanged(build(transposed, mul))
    assert_unchanged(build(conv, lambda graph, y: Relu(y), mul))


def test_not_from_an_input() -> None:
    graph = Graph("main")
    op = mul(graph, graph.add_input("y", (1, C), TensorType.FLOAT32))
    graph.append(op, "z")
    assert fuse_batch_norm(graph) is False
