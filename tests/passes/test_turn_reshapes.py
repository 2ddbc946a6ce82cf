"""TRANSPOSE and RESHAPE change places, and no number changes."""

from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np
import pytest

from luciole.interpreter import Interpreter
from luciole.ir import Array, Graph, Model
from luciole.ir.ops.elementwise_unary import Abs
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.transpose import Transpose
from luciole.ir.passes import run_passes
from luciole.ir.passes.canonical.infer_shapes import infer_shapes
from luciole.ir.passes.layout.sink_transposes import sink_transposes
from luciole.ir.rewriting.turn_reshapes import exchanged, runs
from luciole.ir.value import Shape

Step = tuple[int, ...]


def chain(shape: Step, *steps: tuple[str, Step]) -> Model:
    """TRANSPOSE ("turn", order) and RESHAPE ("as", shape) one after the other, behind an ABS."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    value = graph.append(Abs(graph.add_input("x", shape)), "abs").output
    for number, (kind, numbers) in enumerate(steps):
        operand = graph.add_constant(f"{kind}{number}", np.array(numbers, np.int32))
        made = Transpose(value, operand) if kind == "turn" else Reshape(value, operand)
        value = graph.append(made, f"step{number}").output
    graph.outputs = [graph.append(Abs(value), "y").output]
    return model


def numbers(*shape: int) -> Array:
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def kinds(model: Model) -> list[str]:
    return [op.kind for op in model.graph.ops][1:-1]


def left(model: Model) -> int:
    return sum(isinstance(op, Transpose) for op in model.graph.ops)


def settled(model: Model, shape: Step) -> Model:
    """The model behind the pass, which still computes the same."""
    (want,) = Interpreter(model).run({"x": numbers(*shape)}).values()
    run_passes(model.graph, (sink_transposes,))
    (got,) = Interpreter(model).run({"x": numbers(*shape)}).values()
    np.testing.assert_array_equal(got, want)
    return model


FIRST, LAST = (0, 3, 1, 2), (0, 2, 3, 1)
SHUFFLE = [
    ("turn", FIRST),
    ("as", (2, 3, 4, 5, 6)),
    ("turn", (0, 2, 1, 3, 4)),
    ("as", (2, 12, 5, 6)),
    ("turn", LAST),
]


def test_a_channel_shuffle_has_one_transpose_left() -> None:
    model = settled(chain((2, 5, 6, 12), *SHUFFLE), (2, 5, 6, 12))
    assert kinds(model) == ["RESHAPE", "TRANSPOSE", "RESHAPE"]


def test_images_of_a_pixel_are_flattened_without_a_transpose() -> None:
    model = settled(chain((2, 1, 1, 8), ("turn", FIRST), ("as", (2, 8))), (2, 1, 1, 8))
    assert kinds(model) == ["RESHAPE"]


@pytest.mark.parametrize(
    "steps",
    [
        [("turn", FIRST), ("as", (2, 360))],
        [("turn", FIRST), ("as", (2, 3, 4, 5, 6))],
        [("turn", FIRST), ("as", (2, 6, 10, 6)), ("turn", (0, 2, 1, 3))],
    ],
    ids=["joined", "nothing behind", "other runs"],
)
def test_they_stay_where_axes_are_joined_in_another_sequence(steps: list[tuple[str, Step]]) -> None:
    before = chain((2, 5, 6, 12), *steps)
    count = left(before)
    assert left(settled(before, (2, 5, 6, 12))) == count


def test_what_something_else_reads_stays() -> None:
    model = chain((2, 5, 6, 12), *SHUFFLE)
    shuffled = model.graph.ops[2].output
    model.graph.outputs = [*model.graph.outputs, model.graph.append(Abs(shuffled), "z").output]
    want = Interpreter(model).run({"x": numbers(2, 5, 6, 12)})
    run_passes(model.graph, (sink_transposes,))
    for name, array in Interpreter(model).run({"x": numbers(2, 5, 6, 12)}).items():
        np.testing.assert_array_equal(array, want[name])


def known(shape: Shape) -> Step:
    return tuple(n or 0 for n in shape)


SHAPES = [(2, 3, 4), (6, 4), (2, 12), (24,), (2, 1, 3, 4), (6, 1, 2, 2), (1, 2, 3, 2, 2, 1)]


@pytest.mark.parametrize(("before", "after"), [*pairwise(SHAPES), *pairwise(SHAPES[::-1])])
def test_exchanged_gives_what_numpy_does(before: Step, after: Step) -> None:
    found = 0
    for order in permutations(range(len(before))):
        source = tuple(before[order.index(axis)] for axis in range(len(before)))
        x = np.arange(24).reshape(source)
        way = exchanged(before, after, order)
        if way is not None:
            shape, turned = way
            want = x.transpose(order).reshape(after)
            np.testing.assert_array_equal(x.reshape(known(shape)).transpose(turned), want)
            found += 1
    assert found


def test_runs_are_the_shortest() -> None:
    found = runs((2, 12, 5, 6), (2, 3, 4, 30))
    assert found is not None
    assert [(len(run.before), len(run.after)) for run in found] == [(1, 1), (1, 2), (2, 1)]
    assert runs((None, 6), (2, 3)) is None
    assert runs((None, 6), (None, 2, 3)) is not None


def test_an_open_batch_stays_open() -> None:
    shapes = {(2, 3, 4, 5, 6): (-1, 3, 4, 5, 6), (2, 12, 5, 6): (-1, 12, 5, 6)}
    model = chain((2, 5, 6, 12), *((kind, shapes.get(n, n)) for kind, n in SHUFFLE))
    model.graph.inputs[0].shape = (None, 5, 6, 12)
    infer_shapes(model.graph)
    assert len(settled(model, (2, 5, 6, 12)).graph.ops) == 5
