"""Tensors that hold infinities because constants do."""

from __future__ import annotations

import numpy as np
import pytest

from luciole.ir import Array, Graph, Model, Op, Value
from luciole.ir.analysis.endless import bounded, endless_tensors
from luciole.ir.ops.concatenation import Concatenation
from luciole.ir.ops.elementwise_binary import Add, Maximum, Minimum, Mul, Sub
from luciole.ir.ops.elementwise_unary import Exp
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.reduce import ReduceMax, ReduceMin
from luciole.ir.ops.select import SelectV2
from luciole.ir.ops.softmax import LogSoftmax, Softmax
from luciole.schema.enums import TensorType

INF = float(np.inf)


def started() -> tuple[Graph, Value, Value]:
    model = Model()
    graph = model.add_graph(Graph("main"))
    mask = graph.add_input("mask", (2, 4), TensorType.BOOL)
    return graph, graph.add_input("x", (2, 4)), mask


def constant(graph: Graph, *numbers: float) -> Value:
    return graph.add_constant(graph.unique_name("c"), np.array(numbers, np.float32))


def signs(graph: Graph, op: Op) -> set[int]:
    graph.append(op, graph.unique_name("y"))
    return set(endless_tensors(graph).get(op.output, ()))


@pytest.mark.parametrize("number", [-INF, float(np.finfo(np.float32).min), -1e9])
def test_masks_of_all_kinds_are_infinities(number: float) -> None:
    graph, x, mask = started()
    assert signs(graph, SelectV2(mask, x, constant(graph, number))) == {-1}
    assert signs(graph, Add(x, constant(graph, 0, number, 0, 0))) == {-1}
    assert signs(graph, Mul(x, constant(graph, number))) == {-1, 1}


@pytest.mark.parametrize("number", [0.0, -1e4, 6.0, 99999999.0 / 2])
def test_other_constants_are_numbers(number: float) -> None:
    graph, x, mask = started()
    assert signs(graph, SelectV2(mask, x, constant(graph, number))) == set()
    assert endless_tensors(graph) == {}


def test_a_difference_turns_the_sign_of_what_is_subtracted() -> None:
    graph, x, _ = started()
    assert signs(graph, Sub(x, constant(graph, -INF))) == {1}
    assert signs(graph, Sub(constant(graph, -INF), x)) == {-1}


def test_what_picks_the_largest_passes_what_is_below_all() -> None:
    graph, x, mask = started()
    assert signs(graph, Maximum(x, constant(graph, -INF))) == set()
    assert signs(graph, Maximum(x, constant(graph, INF))) == {1}
    assert signs(graph, Minimum(x, constant(graph, INF))) == set()
    masked = SelectV2(mask, x, constant(graph, -INF))
    assert signs(graph, masked) == {-1}
    assert signs(graph, Maximum(masked.output, constant(graph, -INF))) == {-1}
    axis = graph.add_constant("axis", np.array([1], np.int32))
    assert signs(graph, ReduceMax(masked.output, axis)) == set()
    assert signs(graph, ReduceMin(masked.output, axis)) == {-1}


def test_what_moves_elements_moves_infinities_and_a_softmax_ends_them() -> None:
    graph, x, mask = started()
    masked = SelectV2(mask, x, constant(graph, -INF))
    assert signs(graph, masked) == {-1}
    joined = Concatenation((x, masked.output), axis=1)
    assert signs(graph, joined) == {-1}
    assert signs(graph, Softmax(joined.output, beta=1.0)) == set()
    assert signs(graph, Exp(joined.output)) == set()
    assert signs(graph, LogSoftmax(joined.output)) == {-1}


def test_a_constant_that_is_no_number_has_no_sign_and_goes_no_further() -> None:
    graph, x, mask = started()
    nothing = constant(graph, np.nan)
    assert signs(graph, SelectV2(mask, x, nothing)) == set()
    assert endless_tensors(graph) == {nothing: frozenset({0})}


def test_weights_are_not_looked_at() -> None:
    graph, x, _ = started()
    weights = graph.add_constant("w", np.full((3, 4), -INF))
    assert signs(graph, FullyConnected(x, weights, None)) == set()
    assert endless_tensors(graph) == {}


def test_numbers_that_stand_for_no_infinity() -> None:
    data: Array = np.array([[1, -INF], [-2e9, np.nan], [3, -4]], np.float32)
    assert bounded(data).tolist() == [1, 3, -4]
