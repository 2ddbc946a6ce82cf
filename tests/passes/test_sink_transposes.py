"""TRANSPOSE moves down until it meets its inverse, and no number changes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from luciole.interpreter import Interpreter
from luciole.ir import Array, Graph, Model, Op, Value
from luciole.ir.ops.activations import Relu
from luciole.ir.ops.concatenation import Concatenation
from luciole.ir.ops.elementwise_binary import Add, Mul
from luciole.ir.ops.elementwise_unary import Abs
from luciole.ir.ops.pad import Pad
from luciole.ir.ops.reduce import Mean
from luciole.ir.ops.softmax import Softmax
from luciole.ir.ops.transpose import Transpose
from luciole.ir.passes import run_passes
from luciole.ir.passes.layout.put_channels_last import put_channels_last
from luciole.ir.passes.layout.sink_transposes import sink_transposes

FIRST, LAST = (0, 3, 1, 2), (0, 2, 3, 1)
SHAPE = (2, 3, 4, 5)


def numbers(*shape: int) -> Array:
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def turned(graph: Graph, value: Value, order: tuple[int, ...]) -> Value:
    perm = graph.add_constant(graph.unique_name("perm"), np.array(order, np.int32))
    return graph.append(Transpose(value, perm), graph.unique_name("turned")).output


def constant(graph: Graph, array: Array) -> Value:
    return graph.add_constant(graph.unique_name("constant"), array)


def between(*steps: Callable[[Graph, Value], Op]) -> Model:
    """Steps on an image whose channels are first, between two TRANSPOSE; read by ABS."""
    model, graph = Model(), Graph("main")
    model.add_graph(graph)
    value = turned(graph, graph.append(Abs(graph.add_input("x", SHAPE)), "abs").output, FIRST)
    for step in steps:
        value = graph.append(step(graph, value), graph.unique_name("step")).output
    value = turned(graph, value, LAST)
    graph.outputs = [graph.append(Abs(value), "y").output]
    return model


def ran(model: Model) -> Array:
    (result,) = Interpreter(model).run({"x": numbers(*SHAPE)}).values()
    return np.asarray(result)


def left(model: Model) -> int:
    return sum(isinstance(op, Transpose) for op in model.graph.ops)


def axes(*numbers: int) -> Array:
    return np.array(numbers, np.int32)


GONE: dict[str, Callable[[Graph, Value], Op]] = {
    "unary": lambda g, v: Relu(v),
    "scalar": lambda g, v: Mul(v, constant(g, np.array(3, np.float32))),
    "channels": lambda g, v: Add(v, constant(g, numbers(5, 1, 1))),
    "whole": lambda g, v: Add(constant(g, numbers(1, 5, 3, 4)), v),
    "itself": lambda g, v: Add(v, v),
    "concatenation": lambda g, v: Concatenation((v, v), axis=-3),
    "mean": lambda g, v: Mean(v, constant(g, axes(2, -1)), keep_dims=True),
    "pad": lambda g, v: Pad(v, constant(g, np.array([[0, 0], [1, 2], [0, 0], [3, 0]], np.int32))),
}


@pytest.mark.parametrize("name", GONE)
def test_both_go_where_an_operator_can_be_asked_otherwise(name: str) -> None:
    model = between(GONE[name])
    want = ran(model)
    assert run_passes(model.graph, (sink_transposes,))
    assert left(model) == 0
    if name == "mean":  # adds in another order
        np.testing.assert_allclose(ran(model), want, rtol=1e-6, atol=1e-7)
    else:
        np.testing.assert_array_equal(ran(model), want)


def test_a_whole_chain_is_passed() -> None:
    model = between(*(step for name, step in GONE.items() if name != "pad"))
    want = ran(model)
    run_passes(model.graph, (sink_transposes,))
    assert left(model) == 0
    np.testing.assert_allclose(ran(model), want, rtol=1e-6, atol=1e-6)


KEPT: dict[str, Callable[[Graph, Value], Op]] = {
    "softmax": lambda g, v: Softmax(v, beta=1.0),
    "dropped axes": lambda g, v: Mean(v, constant(g, axes(2)), keep_dims=False),
    "another operand": lambda g, v: Add(v, g.add_input("z", (2, 5, 3, 4))),
}


@pytest.mark.parametrize("name", KEPT)
def test_they_stay_before_what_means_certain_axes(name: str) -> None:
    model, graph = Model(), Graph("main")
    model.add_graph(graph)
    value = turned(graph, graph.add_input("x", SHAPE), FIRST)
    graph.outputs = [graph.append(KEPT[name](graph, value), "y").output]
    assert not sink_transposes(graph)
    assert left(model) == 1


@pytest.mark.parametrize("dropped", [(1,), (2, 3), (-1, -2), (1, 2, 3)])
def test_one_goes_where_a_reduction_leaves_the_other_axes_in_their_order(
    dropped: tuple[int, ...],
) -> None:
    model, graph = Model(), Graph("main")
    model.add_graph(graph)
    value = turned(graph, graph.add_input("x", SHAPE), FIRST)
    mean = Mean(value, constant(graph, axes(*dropped)), keep_dims=False)
    graph.outputs = [graph.append(mean, "y").output]
    want = ran(model)
    run_passes(graph, (sink_transposes,))
    assert left(model) == 0
    np.testing.assert_allclose(ran(model), want, rtol=1e-6, atol=1e-7)


def test_a_sum_with_what_was_turned_before_reads_that() -> None:
    model, graph = Model(), Graph("main")
    model.add_graph(graph)
    x = graph.add_input("x", SHAPE)
    last = graph.append(Softmax(turned(graph, x, LAST), beta=1.0), "softmax").output
    graph.outputs = [graph.append(Add(x, turned(graph, last, FIRST)), "y").output]
    want = ran(model)
    run_passes(graph, (sink_transposes,))
    assert [op.kind for op in graph.ops] == ["TRANSPOSE", "SOFTMAX", "ADD", "TRANSPOSE"]
    assert graph.outputs[0].name == "y"
    np.testing.assert_array_equal(ran(model), want)
    assert put_channels_last(graph)
    assert [op.kind for op in graph.ops] == ["SOFTMAX", "ADD"]
    assert graph.inputs[0].shape == (2, 4, 5, 3)
    (got,) = Interpreter(model).run({"x": numbers(*SHAPE).transpose(LAST)}).values()
    np.testing.assert_array_equal(got, want.transpose(LAST))


def test_channels_stay_where_something_else_reads_the_input() -> None:
    model, graph = Model(), Graph("main")
    model.add_graph(graph)
    x = graph.add_input("x", SHAPE)
    graph.outputs = [
        graph.append(Relu(turned(graph, x, LAST)), "y").output,
        graph.append(Abs(x), "z").output,
    ]
    assert not put_channels_last(graph)
    assert graph.inputs[0].shape == SHAPE


def test_a_result_that_is_turned_back_keeps_its_name() -> None:
    model, graph = Model(), Graph("main")
    model.add_graph(graph)
    made = graph.append(Abs(graph.add_input("x", SHAPE)), "abs").output
    back = turned(graph, turned(graph, made, FIRST), LAST)
    back.name, graph.outputs = "y", [back]
    wanted = ran(model)
    run_passes(graph, (sink_transposes,))
    assert [value.name for value in graph.outputs] == ["y"]
    assert left(model) == 0
    np.testing.assert_array_equal(ran(model), wanted)


def test_an_input_that_is_turned_back_stays_another_tensor_than_the_result() -> None:
    model, graph = Model(), Graph("main")
    model.add_graph(graph)
    back = turned(graph, turned(graph, graph.add_input("x", SHAPE), FIRST), LAST)
    graph.outputs = [back]
    run_passes(graph, (sink_transposes,))
    assert graph.outputs == [back]
