"""Operators that together compute a function of one tensor of bytes, which is looked up."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from luciole.interpreter import Interpreter
from luciole.ir import Graph, Model, Op, TensorType, Value
from luciole.ir.ops.activations import Logistic, Relu6
from luciole.ir.ops.elementwise_binary import Add, Binary, Mul, Sub
from luciole.kernels.integers.functions_of_bytes import table_of
from tests.support import Affine

INT8 = TensorType.INT8
X = np.random.default_rng(0).integers(-128, 128, (3, 5, 7, 11), np.int8)


def put(graph: Graph, op: Op, scale: float, zero_point: int) -> Value:
    value = graph.append(op, graph.unique_name(op.kind)).output
    Affine(scale, zero_point).give(value)
    return value


def constant(graph: Graph, number: int) -> Value:
    value = graph.add_constant(graph.unique_name("c"), np.full((1, 1), number, np.int8))
    Affine(0.03, 2).give(value)
    return value


def logistic(graph: Graph, x: Value) -> Value:
    return put(graph, Logistic(x), 1 / 256, -128)


def hard(graph: Graph, x: Value) -> Value:
    raised = put(graph, Add(x, constant(graph, 102)), 0.06, -30)
    return put(graph, Mul(put(graph, Relu6(raised), 6 / 255, -128), constant(graph, 8)), 0.005, -90)


def itself(graph: Graph, x: Value) -> Value:
    return x


def network(cls: type[Binary], function: Callable[[Graph, Value], Value], turned: bool) -> Model:
    model = Model()
    x = model.add_graph(Graph("main")).add_input("x", X.shape, INT8)
    Affine(0.04, -11).give(x)
    other = function(model.graph, x)
    op = cls(other, x) if turned else cls(x, other)
    model.graph.outputs = [put(model.graph, op, 0.05, 7)]
    return model


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("function", [logistic, hard, itself])
@pytest.mark.parametrize("cls", [Mul, Add, Sub])
def test_a_function_of_one_byte_is_looked_up(
    cls: type[Binary], function: Callable[[Graph, Value], Value], turned: bool
) -> None:
    model = network(cls, function, turned)
    last = model.graph.ops[-1]
    assert isinstance(last, Binary)
    assert table_of(last) is not None
    every = np.resize(np.arange(-128, 128).astype(np.int8), X.shape)
    for given in (X, every):
        compiled, alone = (
            next(iter(Interpreter(model, compiled=each).run(given).values()))
            for each in (True, False)
        )
        np.testing.assert_array_equal(compiled, alone)


def test_functions_of_other_tensors_are_none_of_one_byte() -> None:
    model = network(Mul, lambda graph, x: put(graph, Add(x, constant(graph, 3)), 0.1, 0), False)
    graph = model.graph
    x, sum_ = graph.inputs[0], graph.ops[0].output
    y = graph.add_input("y", X.shape, INT8)
    y.quantization = x.quantization
    gate = graph.add_input("gate", (3, 1, 1, 11), INT8)
    gate.quantization = x.quantization
    row = graph.add_constant("row", np.arange(11, dtype=np.int8))
    row.quantization = x.quantization
    for op in (Mul(x, y), Mul(sum_, y), Mul(x, gate), Mul(x, row)):
        put(graph, op, 0.1, 0)
        assert table_of(op) is None
    of_row = put(graph, Add(x, row), 0.1, 0)
    product = Mul(x, of_row)
    put(graph, product, 0.1, 0)
    assert table_of(product) is None
