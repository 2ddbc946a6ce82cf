"""The wall before compiled kernels: rules hold for arrays, whatever a graph says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import luciole
from luciole.ir import Array, Graph, Model, Op, ShapeError, Value
from luciole.ir.ops.activations import Relu
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.transpose_conv import TransposeConv
from luciole.kernels.core import building, registry
from luciole.kernels.core.contract import Context, NativeStep
from luciole.kernels.core.errors import ExecutionError
from luciole.schema.enums import Padding


def floats(*shape: int) -> Array:
    return np.ones(shape, np.float32)


def add(x: Sequence[int], y: Sequence[int]) -> Op:
    """ADD in a graph that leaves every extent open, as files may."""
    graph = Model().add_graph(Graph("main"))
    left, right = (graph.add_input(n, (None,) * len(s)) for n, s in (("x", x), ("y", y)))
    graph.outputs = [graph.append(Add(left, right), "sum").output]
    return graph.ops[0]


def built(op: Op, operands: Sequence[Array | None], *results: Array) -> bool:
    """Whether a kernel was built."""
    step = building.build_native(op, Context(tuple(operands), results))
    return isinstance(step, NativeStep)


def test_arrays_that_fit_are_built_whatever_the_graph_leaves_open() -> None:
    op = add((3, 5), (5,))
    assert built(op, [floats(3, 5), floats(5)], floats(3, 5))
    assert [v.shape for v in op.operands if v is not None] == [(None, None), (None,)]


def test_a_builder_refuses_operands_that_do_not_fit_together() -> None:
    with pytest.raises(ShapeError, match=r"^Add 'sum': shapes \[4096\] and \[4\] do not broadcast"):
        built(add((1,), (1,)), [floats(4096), floats(4)], floats(4096))


@pytest.mark.parametrize("shape", [(3, 4), (5, 3), (15,), (3, 5, 1), (0, 5)])
def test_a_builder_refuses_a_result_of_another_shape(shape: tuple[int, ...]) -> None:
    text = str(list(shape)).replace(" ", "").replace("[", r"\[")
    said = rf"^Add 'sum': its operands make a result \[3,5\], 'sum' has room for {text}"
    with pytest.raises(ShapeError, match=said):
        built(add((1, 1), (1,)), [floats(3, 5), floats(5)], floats(*shape))


def test_a_builder_refuses_an_array_of_another_type() -> None:
    op = add((1, 1), (1,))
    said = "^Add 'sum': operand 'y' is FLOAT32, its array float64$"
    with pytest.raises(ShapeError, match=said):
        built(op, [floats(3, 5), np.ones(5)], floats(3, 5))
    with pytest.raises(ShapeError, match=r"^Add 'sum': result 'sum' is FLOAT32, its array int8$"):
        built(op, [floats(3, 5), floats(5)], np.ones((3, 5), np.int8))


def test_a_builder_refuses_an_array_that_lies_in_another_order() -> None:
    op = add((1, 1), (1,))
    said = "^Add 'sum': operand 'x' is FLOAT32, its array float32 in another order than C's$"
    with pytest.raises(ShapeError, match=said):
        built(op, [floats(5, 3).T, floats(5)], floats(3, 5))


@pytest.mark.parametrize("operands", [[None, floats(5)], [floats(3, 5), None]])
def test_a_builder_refuses_an_operand_without_an_array(operands: list[Array | None]) -> None:
    with pytest.raises(ShapeError, match=r"^Add 'sum': operand '[xy]' is there without an array"):
        built(add((1, 1), (1,)), operands, floats(3, 5))


def test_builders_are_called_behind_the_wall_only() -> None:
    sources = {p: p.read_text() for p in Path(luciole.__path__[0]).rglob("*.py")}
    callers = {p.name for p, text in sources.items() if "find_native(" in text}
    assert callers == {"building.py", "registry.py"}


def test_what_a_builder_refuses_names_the_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(op: Op, context: Context) -> None:
        raise ExecutionError("this is too much")

    monkeypatch.setattr(building, "find_native", lambda op: refuse)
    with pytest.raises(ExecutionError, match=r"^Add 'sum': this is too much$"):
        built(add((1, 1), (1,)), [floats(3, 5), floats(5)], floats(3, 5))


def test_the_second_wall_refuses_what_got_past_the_first() -> None:
    """Whoever calls a builder by himself."""
    build = registry.find_native(add((1,), (1,)))
    assert build is not None
    with pytest.raises(ExecutionError, match="would touch bytes 0 to 16384 of a tensor"):
        build(add((1,), (1,)), Context((floats(4096), floats(4)), (floats(4096),)))


# --------------------------------------------------------------------- files that are not true
def with_open_extents(value: Value) -> Value:
    """A constant or a variable as a hostile file has it: every extent called unknown."""
    value.shape_signature = (-1,) * len(value.dims)
    return value


@pytest.mark.parametrize("is_variable", [False, True])
def test_a_graph_refuses_an_operand_that_does_not_fit_whatever_its_signature(
    is_variable: bool,
) -> None:
    graph = Model().add_graph(Graph("main"))
    x = graph.add_input("x", (4096,))
    small = graph.add_constant("small", floats(4))
    small.is_variable = is_variable
    with pytest.raises(ShapeError, match=r"^Add '': shapes \[4096\] and \[4\] do not broadcast"):
        graph.append(Add(x, with_open_extents(small)), "y")


def test_a_graph_refuses_a_filter_that_does_not_fit_whatever_its_signature() -> None:
    graph = Model().add_graph(Graph("main"))
    sizes = graph.add_constant("sizes", np.array([1, 4, 4, 1], np.int32))
    weights = with_open_extents(graph.add_constant("filter", floats(64, 1, 1, 2)))
    x = graph.add_input("x", (1, 4, 4, 2))
    op = TransposeConv(sizes, weights, x, padding=Padding.SAME, stride_w=1, stride_h=1)
    with pytest.raises(ShapeError, match=r"^TransposeConv '': output channels: input_sizes has 1"):
        graph.append(op, "y")


def test_nothing_is_built_for_relu_of_another_size() -> None:
    graph = Model().add_graph(Graph("main"))
    graph.outputs = [graph.append(Relu(graph.add_input("x", (8,))), "y").output]
    said = r"^Relu 'y': its operands make a result \[8\], 'y' has room for \[7\]"
    with pytest.raises(ShapeError, match=said):
        built(graph.ops[0], [floats(8)], floats(7))
