"""Settling alone: shapes for given inputs, constants computed and spelt out, and refusals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from luciole.interpreter.memory import MemoryLimitError, arena_layout
from luciole.interpreter.settle import Settled, settle
from luciole.ir import Array, Graph, GraphError, Model, ShapeError, TensorType, Value
from luciole.ir.ops.activations import Tanh
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.fill import Fill
from luciole.ir.ops.random import RandomUniform
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.shape import Shape
from luciole.kernels.core import building
from luciole.kernels.core.allocation import Allocator, Bytes, use
from tests.networks import network, random
from tests.support import make_sparse

LIMIT = 1 << 20


def graph_of(shape: tuple[int | None, ...] = (None, 6)) -> Graph:
    graph = Model().add_graph(Graph("main"))
    graph.add_input("x", shape)
    return graph


def settled(graph: Graph, *shapes: tuple[int, ...], limit: int = LIMIT) -> Settled:
    """The graph, its first inputs of the given shapes."""
    return settle(graph, dict(zip(graph.inputs, shapes, strict=False)), limit)


def names(found: Settled) -> list[str]:
    """The operators that are left."""
    return [op.name for op in found.ops]


def constants(found: Settled) -> dict[str, Array]:
    return {value.name: array for value, array in found.constants.items()}


# ----------------------------------------------------------------------------------- shapes
def test_results_have_the_shapes_that_those_of_inputs_give_them() -> None:
    graph = graph_of()
    op = graph.append(Tanh(graph.inputs[0]), "y")
    found = settled(graph, (5, 6))
    assert found.values[op.output].shape == (5, 6)
    assert found.values[graph.inputs[0]].shape == (5, 6)


def test_inputs_that_are_given_no_shape_keep_theirs() -> None:
    graph = graph_of()
    op = graph.append(Tanh(graph.inputs[0]), "y")
    assert settled(graph).values[op.output].shape == (None, 6)


def test_what_an_input_holds_leaves_extents_open_whatever_the_file_says() -> None:
    graph = graph_of()
    wanted = graph.add_input("wanted", (2,), TensorType.INT32)
    said = graph.add_value(Value("y", TensorType.FLOAT32, (3, 10)))
    graph.append(Reshape(graph.inputs[0], wanted), results=[said])
    tanh = graph.append(Tanh(said), "z").output
    found = settled(graph, (5, 6))
    assert [found.values[v].shape for v in (said, tanh)] == [(None, None)] * 2
    assert names(found) == ["y", "z"]


def test_results_have_the_types_that_kernels_write() -> None:
    graph = graph_of()
    op = graph.append(Tanh(graph.inputs[0]), "y")
    op.output.dtype = TensorType.INT8
    assert settled(graph, (1, 6)).values[op.output].dtype == TensorType.FLOAT32


def test_the_graph_itself_stays_as_it_was() -> None:
    graph = network().graph
    before = [(v.shape, v.dtype, v.producer) for v in graph.values], list(graph.ops)
    found = settled(graph, (7, 20))
    assert before == ([(v.shape, v.dtype, v.producer) for v in graph.values], list(graph.ops))
    assert {found.sources[op] for op in found.ops} == set(graph.ops)
    assert set(found.values) == set(graph.values)
    assert set(found.values.values()) == set(found.graph.values)


def test_two_shapes_of_one_graph_are_settled_apart() -> None:
    graph = network(shape=(None, 20)).graph
    few, many = settled(graph, (1, 20)), settled(graph, (9, 20))
    rows = [found.values[graph.outputs[0]].shape[0] for found in (few, many)]
    assert rows == [1, 9]


# ---------------------------------------------------------------------------------- folding
def folding(extent: int) -> Graph:
    """x + 0 reshaped to the shape of x, where 0 is FILL of ``extent`` elements."""
    graph = graph_of((None,))
    dims = graph.add_constant("dims", np.array([extent], np.int32))
    zero = graph.append(Fill(dims, graph.add_constant("0", np.zeros((), np.float32))), "zeros")
    total = graph.append(Add(graph.inputs[0], zero.output), "sum").output
    shape = graph.append(Shape(graph.inputs[0], out_type=TensorType.INT32), "shape").output
    graph.append(Reshape(total, shape), "y")
    return graph


def test_what_is_constant_or_follows_from_shapes_is_computed() -> None:
    found = settled(folding(4), (4,))
    assert names(found) == ["sum", "y"]
    assert constants(found)["zeros"].tolist() == [0, 0, 0, 0]
    assert constants(found)["shape"].tolist() == [4]
    assert found.made_bytes == 4 * 4 + 4
    assert all(v.producer is None for v in found.constants)
    assert found.graph.values[-1].shape == (4,)


def test_constants_of_the_file_are_held_and_take_nothing() -> None:
    graph = network().graph
    found = settled(graph, (1, 20))
    assert found.made_bytes == 0
    for value in graph.values:
        if value.is_constant:
            assert value.data is not None
            assert np.shares_memory(found.constants[found.values[value]], value.data)


@pytest.mark.parametrize(
    ("limit", "left"),
    [
        (20, ["sum", "y"]),
        (19, ["sum", "shape", "y"]),
        (15, ["zeros", "sum", "y"]),
        (3, ["zeros", "sum", "shape", "y"]),
    ],
)
def test_what_does_not_fit_any_more_is_left_to_run(limit: int, left: list[str]) -> None:
    """The zeros take 16 bytes, the shape 4."""
    found = settled(folding(4), (4,), limit=limit)
    assert names(found) == left
    assert found.made_bytes <= limit


def test_an_operator_with_state_is_never_computed() -> None:
    graph = graph_of()
    shape = graph.add_constant("shape", np.array([4], np.int32))
    graph.append(RandomUniform(shape, seed=1), "y")
    found = settled(graph)
    assert names(found) == ["y"]
    assert found.ops[0].output.shape == (4,)


def test_sparse_constants_get_all_their_elements() -> None:
    graph = graph_of()
    given = random(1, 3, 6)
    value = graph.add_constant("c", given)
    make_sparse(value)
    found = settled(graph)
    np.testing.assert_array_equal(constants(found)["c"], given)
    assert found.made_bytes == given.nbytes
    assert found.values[value].sparsity is None
    assert value.sparsity is not None


# --------------------------------------------------------------------------------- refusals
def test_settling_refuses_operands_that_do_not_fit() -> None:
    graph = graph_of()
    graph.append(Add(graph.inputs[0], graph.add_constant("c", random(0, 6))), "y")
    with pytest.raises(ShapeError, match=r"Add 'y': shapes \[2,5\] and \[6\] do not broadcast"):
        settled(graph, (2, 5))


def test_settling_refuses_an_operator_that_computes_a_variable() -> None:
    graph = graph_of()
    graph.append(Tanh(graph.inputs[0]), "y").output.is_variable = True
    with pytest.raises(GraphError, match="Tanh 'y' computes 'y', which is a variable"):
        settled(graph, (2, 6))


def test_settling_refuses_sparse_constants_beyond_the_limit() -> None:
    graph = graph_of()
    make_sparse(graph.add_constant("c", random(1, 3, 6)))
    with pytest.raises(MemoryLimitError, match=r"'c' \[3,6\] takes 72 bytes .* 71 are allowed"):
        settled(graph, limit=71)


# ------------------------------------------------------------------ without memory or kernels
class Nothing(Allocator):
    """An allocator that has no memory to give."""

    def zeros(self, size: int) -> Bytes:
        raise AssertionError(f"{size} bytes were taken")

    def block(self, size: int, places: Sequence[tuple[int, int]]) -> list[Bytes]:
        raise AssertionError(f"a block of {size} bytes was taken")


@pytest.fixture
def no_memory() -> Iterator[None]:
    before = use(Nothing())
    yield
    use(before)


@pytest.mark.usefixtures("no_memory")
def test_settling_and_laying_out_take_no_memory_and_build_no_kernels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(building, "build_native", None)
    graph = network(sizes=(20, 16, 16, 4)).graph
    found = settled(graph, (64, 20))
    layout = arena_layout(found, LIMIT)
    assert layout.size == 64 * 4 * (20 + 16 + 16)
    assert {v.name for v in layout.places} == {"x", "fc1", "act1", "fc2", "act2", "fc3"}
