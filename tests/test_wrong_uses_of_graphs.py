"""Wrong edits of graphs are refused in one sentence, before anything has changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from luciole.ir import Graph, LucioleError, Model, TensorType, Value
from luciole.ir.errors import GraphError
from luciole.ir.extents import check_shapes
from luciole.ir.names import find_tensor
from luciole.ir.ops import Concatenation, Tanh
from tests.support import refusal_of

FLOATS = np.array([0.5, 1.0], np.float32)
OBJECTS = np.array([object(), None])
ELSEWHERE = Graph("elsewhere").add_input("elsewhere", (1, 6))


def wrong(argument: object) -> Any:
    """Pass an argument of another type than the one that is declared."""
    return argument


@pytest.fixture
def graph() -> Graph:
    graph = Model().add_graph(Graph("main"))
    x = graph.add_input("x", (1, 6))
    graph.append(Tanh(x), "y")
    graph.outputs = [graph.ops[0].output]
    graph.add_constant("k", FLOATS)
    return graph


Edit = Callable[[Graph], object]

EXTENTS: list[tuple[Edit, str]] = [
    (lambda g: check_shapes({"x": wrong(6)}), "the shape of x: a list of extents is needed, fo"),
    (lambda g: check_shapes({"x": "1,6"}), "the shape of x: a list of extents is needed, found"),
    (lambda g: g.add_input("n", wrong(3)), "'n': a list of extents as shape is needed, found i"),
    (lambda g: g.add_input("n", wrong(None)), "'n': a list of extents as shape is needed, fou"),
    (lambda g: g.add_input("n", (1, -6)), "'n' has extents below 0, (1, -6): None is an open"),
    (lambda g: setattr(g.values[2], "shape", "16"), "'k': a list of extents as shape is needed"),
    (lambda g: setattr(g.values[2], "shape", (1, "a")), "'k': a whole number as extent is need"),
    (lambda g: Value("n", TensorType.INT8, wrong("ab")), "'n': a list of extents as shape is n"),
]

CONTENTS: list[tuple[Edit, str]] = [
    (lambda g: g.values[2].make_constant(OBJECTS), "tensor 'k': texts are bytes or str, found"),
    (lambda g: g.add_constant("n", OBJECTS), "tensor 'n': texts are bytes or str, found"),
    (lambda g: g.add_constant("n", np.zeros(2, "i4,f4")), "tensor 'n': circle has no element ty"),
    (lambda g: g.add_constant("n", FLOATS, wrong("int8")), "'n': a TensorType as dtype is needed"),
    (lambda g: g.add_constant("n", FLOATS, wrong(3)), "'n': a TensorType as dtype is needed, fou"),
    (lambda g: g.add_constant("n", FLOATS, TensorType.INT8), "INT8 holds whole numbers, found fr"),
    (lambda g: g.add_constant("n", FLOATS, TensorType.INT4), "INT4 holds whole numbers, found fr"),
    (lambda g: g.add_constant("n", FLOATS * 99 - 0.5, TensorType.INT4), "tensor 'n': INT4 holds"),
    (lambda g: g.values[2].make_constant(np.array([9]), TensorType.INT4), "tensor 'k': INT4 hol"),
]

TENSORS: list[tuple[Edit, str]] = [
    (lambda g: g.remove_value(wrong(3)), "a tensor of the graph is needed, found int"),
    (lambda g: g.remove_value(ELSEWHERE), "tensor 'elsewhere' is not in this graph"),
    (lambda g: g.remove_value(g.inputs[0]), "tensor 'x' is used by Tanh 'y'"),
    (lambda g: g.remove_value(g.outputs[0]), "tensor 'y' is computed by Tanh 'y': remove it"),
    (lambda g: g.remove_value(g.add_input("n", (1,))), "tensor 'n' is used by the graph's caller"),
    (lambda g: g.add_value(wrong(3)), "a tensor to add is needed, found int"),
    (lambda g: setattr(g, "inputs", 3), "Graph.inputs: a list of tensors is needed, found int"),
    (
        lambda g: setattr(g, "outputs", None),
        "Graph.outputs: a list of tensors is need",
    ),
    (
        lambda g: setattr(g, "outputs", g.inputs[0]),
        "Graph.outputs: a list of tensors is need",
    ),
    (lambda g: setattr(g, "outputs", ["y"]), "Graph.outputs: a tensor in each place is ne"),
    (lambda g: g.outputs.append(wrong("y")), "an input or output of a graph: a tensor is needed"),
    (lambda g: g.inputs.extend(wrong(["y"])), "an input or output of a graph: a tensor is neede"),
    (lambda g: g.inputs.insert(0, wrong(3)), "an input or output of a graph: a tensor is needed"),
    (lambda g: find_tensor([g], wrong(3)), "the name of a tensor is needed, found int"),
    (lambda g: g.add_input(wrong(3), (1,)), "the name of a tensor: a text is needed, found int"),
    (lambda g: setattr(g.inputs[0], "name", None), "the name of a tensor: a text is needed, fo"),
    (lambda g: setattr(g.inputs[0], "dtype", 3), "'x': a TensorType as dtype is needed, found"),
    (lambda g: g.add_input("n", (1,), wrong("float32")), "'n': a TensorType as dtype is needed"),
]

OPERATORS: list[tuple[Edit, str]] = [
    (lambda g: g.append(Tanh(g.inputs[0]), results=wrong(3)), "results: a list of tensors is ne"),
    (lambda g: g.append(Tanh(g.inputs[0]), results=wrong([3])), "results: a tensor in each place"),
    (lambda g: g.append(Tanh(g.inputs[0]), wrong(3)), "the name of a tensor: a text is needed"),
    (lambda g: g.ops[0].set_operand(wrong("x"), None), "slot: a whole number is needed, found s"),
    (lambda g: g.ops[0].set_operand(-1, g.inputs[0]), "Tanh 'y' has no operand -1: it takes at"),
    (lambda g: g.ops[0].set_operand(99, None), "Tanh 'y' has no operand 99: it takes at most 1"),
    (lambda g: g.ops[0].set_operands(wrong(3)), "Tanh.operands: a list of tensors is needed"),
    (lambda g: Concatenation(wrong(3)), "Concatenation.inputs: a list of tensors is needed"),
    (lambda g: Concatenation(g.inputs[0]), "Concatenation.inputs: a list of tensors is ne"),
    (lambda g: Concatenation(None), "Concatenation.inputs: a list of tensors is needed, f"),
    (lambda g: Tanh(None), "Tanh: a tensor as 'x' is needed, found None"),
]

MODELS: list[tuple[Edit, str]] = [
    (lambda g: Model(wrong(3)), "graphs: a list of Graphs (luciole.load reads files) is needed"),
    (lambda g: Graph(wrong(3)), "the name of a graph: a text is needed, found int"),
    (lambda g: wrong(g.model).add_graph(g), "graph 'main' belongs to a model already: add its"),
    (lambda g: Model().add_graph(g), "graph 'main' belongs to a model already: add its clone()"),
]


@pytest.mark.parametrize(("edit", "sentence"), [*EXTENTS, *CONTENTS, *TENSORS, *OPERATORS, *MODELS])
def test_a_graph_refuses_wrong_edits(graph: Graph, edit: Edit, sentence: str) -> None:
    refusal = refusal_of(edit, graph)
    assert sentence in refusal
    assert "\n" not in refusal


@pytest.mark.parametrize("edit", [edit for edit, _ in CONTENTS])
def test_a_graph_keeps_its_tensors_where_contents_are_refused(graph: Graph, edit: Edit) -> None:
    with pytest.raises(LucioleError):
        edit(graph)
    assert [value.name for value in graph.values] == ["x", "y", "k"]
    assert np.array_equal(graph.values[2].contents, FLOATS)


def test_a_tensor_of_another_graph_stays_there_when_it_is_not_removed(graph: Graph) -> None:
    with pytest.raises(GraphError, match="not in this graph"):
        graph.remove_value(ELSEWHERE)
    assert ELSEWHERE in wrong(ELSEWHERE.graph).values


def test_an_unused_tensor_can_be_removed(graph: Graph) -> None:
    graph.remove_value(graph.values[2])
    assert [value.name for value in graph.values] == ["x", "y"]


def test_a_graph_that_left_its_model_can_be_added_again(graph: Graph) -> None:
    wrong(graph.model).graphs.remove(graph)
    assert Model().add_graph(graph).model is not None


def test_whole_floats_become_integers(graph: Graph) -> None:
    made = graph.add_constant("n", np.array([-2.0, 3.0], np.float32), TensorType.INT8)
    assert made.contents.tolist() == [-2, 3]
