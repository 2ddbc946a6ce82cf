"""DEQUANTIZE, an operator on floats and QUANTIZE become the operator on integers."""

from __future__ import annotations

import numpy as np
import pytest

from luciole.interpreter import Interpreter
from luciole.ir import Graph, Model, Op, TensorType, Value
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.elementwise_unary import Sin
from luciole.ir.ops.quantize import Dequantize, Quantize
from luciole.ir.ops.split import Split
from luciole.ir.passes.cleaning.remove_dead import remove_dead
from luciole.ir.passes.fuse_quantization import fuse_quantization, fuse_weights
from luciole.ir.quantization import Affine
from luciole.schema.enums import Padding
from tests.networks import random


def anything(op: Op) -> bool:
    return True


def nothing(op: Op) -> bool:
    return False


def graph_with(scale: float = 0.1) -> tuple[Model, Value]:
    """x, quantized and real again."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    return model, rounded(graph, graph.add_input("x", (1, 4, 4, 2)), scale)


def rounded(graph: Graph, value: Value, scale: float, dtype: TensorType = TensorType.INT8) -> Value:
    name = graph.unique_name(f"{value.name}/rounded")
    integers = graph.append(Quantize(value), f"{name}/integers").output
    integers.dtype, integers.quantization = dtype, Affine.single(scale, 3, dtype).table()
    return graph.append(Dequantize(integers), name).output


def constant(graph: Graph, name: str, *shape: int) -> Value:
    codes = np.random.default_rng(1).integers(-127, 128, shape).astype(np.int8)
    value = graph.add_constant(f"{name}/codes", codes)
    value.quantization = Affine.channels(
        np.full(shape[0], 0.02), np.zeros(shape[0]), 0, TensorType.INT8
    ).table()
    return graph.append(Dequantize(value), name).output


def kinds(graph: Graph) -> list[str]:
    return [op.kind for op in graph.ops]


def finished(graph: Graph, value: Value) -> Graph:
    graph.outputs = [value]
    fuse_quantization(graph, anything)
    remove_dead(graph)
    return graph


def test_a_layer_computes_with_integers_and_its_bias_has_their_scale() -> None:
    model, x = graph_with()
    graph = model.graph
    weights = constant(graph, "w", 3, 3, 3, 2)
    bias = graph.add_constant("b", np.array([1.0, -2.0, 0.5], np.float32))
    layer = Conv2D(x, weights, bias, stride_h=1, stride_w=1, padding=Padding.SAME)
    y = graph.append(layer, "y").output
    floats = model.clone()
    floats.graph.outputs = [floats.graph.values[graph.values.index(y)]]
    finished(graph, rounded(graph, y, 0.05))
    assert kinds(graph) == ["QUANTIZE", "CONV_2D", "DEQUANTIZE"]
    stored = layer.bias
    assert stored is not None
    assert stored.dtype == TensorType.INT32
    np.testing.assert_allclose(Affine.of(stored, "it").scale, np.float32(0.1) * np.float32(0.02))
    np.testing.assert_array_equal(stored.data, [500, -1000, 250])
    assert layer.version == 3
    array = random(4, 1, 4, 4, 2)
    real = Interpreter(floats).run({"x": array})["y"]
    wanted = np.clip(real, (-128 - 3) * 0.05, (127 - 3) * 0.05)
    (found,) = Interpreter(model).run({"x": array}).values()
    halves = 0.05 / 2 + 0.1 * 0.02 / 2  # of the steps of result and bias
    assert np.abs(found - wanted).max() <= halves + 1e-5


def test_what_does_not_run_on_integers_stays() -> None:
    model, x = graph_with()
    y = rounded(model.graph, model.graph.append(Sin(x), "y").output, 0.1)
    model.graph.outputs = [y]
    before = kinds(model.graph)
    assert not fuse_quantization(model.graph, nothing)
    assert kinds(model.graph) == before


def test_an_operator_between_integers_of_two_types_stays() -> None:
    """It has no form on integers whose result is of another type than its operand."""
    model, x = graph_with()
    graph = model.graph
    finished(graph, rounded(graph, graph.append(Add(x, x), "y").output, 0.1, TensorType.UINT8))
    assert kinds(graph) == ["QUANTIZE", "DEQUANTIZE", "ADD", "QUANTIZE", "DEQUANTIZE"]


def test_pairs_of_one_scale_cancel_and_others_are_one_step() -> None:
    model, x = graph_with(0.1)
    graph = finished(model.graph, rounded(model.graph, rounded(model.graph, x, 0.1), 0.2))
    assert kinds(graph) == ["QUANTIZE", "QUANTIZE", "DEQUANTIZE"]
    assert [op.operands[0].dtype for op in graph.ops if op.operands[0]] == [
        TensorType.FLOAT32,
        TensorType.INT8,
        TensorType.INT8,
    ]


@pytest.mark.parametrize(("scales", "is_fused"), [((0.1, 0.1), True), ((0.1, 0.2), False)])
def test_integers_are_moved_only_to_where_they_stand_for_the_same(
    scales: tuple[float, float], is_fused: bool
) -> None:
    model, x = graph_with(0.1)
    graph = model.graph
    axis = graph.add_constant("axis", np.array(3, np.int32))
    split = graph.append(Split(axis, x, num_splits=2), "p", "q")
    pairs = zip(split.results, scales, strict=True)
    graph.outputs = [rounded(graph, value, scale) for value, scale in pairs]
    array = random(4, 1, 4, 4, 2)
    before = [y.copy() for y in Interpreter(model).run({"x": array}).values()]
    fuse_quantization(graph, anything)
    assert (split.output.dtype == TensorType.INT8) == is_fused
    for y, own in zip(Interpreter(model).run({"x": array}).values(), before, strict=True):
        np.testing.assert_allclose(y, own, atol=1e-6)


def test_a_result_that_is_read_as_it_is_stays_float() -> None:
    model, x = graph_with()
    graph = model.graph
    y = graph.append(Add(x, x), "y").output
    graph.outputs = [rounded(graph, y, 0.1), y]
    fuse_quantization(graph, anything)
    (add,) = [op for op in graph.ops if isinstance(op, Add)]
    assert add.output.dtype == TensorType.FLOAT32


def test_layers_read_integer_weights_under_float_inputs() -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (1, 4, 4, 2))
    layer = Conv2D(x, constant(graph, "w", 3, 3, 3, 2), None, stride_h=1, stride_w=1)
    graph.outputs = [graph.append(layer, "y").output]
    assert not fuse_weights(graph, nothing)
    assert fuse_weights(graph, anything)
    remove_dead(graph)
    assert kinds(graph) == ["CONV_2D"]
    assert layer.filter.dtype == TensorType.INT8
    assert layer.version == 5
