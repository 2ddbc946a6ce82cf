"""BATCH_MATMUL: numbers against LiteRT, and shapes."""

from typing import Any

import numpy as np
import pytest

from luciole.importers import from_bytes
from luciole.interpreter import compile_graph
from luciole.ir import Graph, ShapeError, UnsupportedError
from luciole.ir.ops.batch_matmul import BatchMatMul
from tests.native_support import built, run_compiled
from tests.ops.int8_support import integers
from tests.support import Affine, data_path, litert, one_op, run_litert, run_reference

pytestmark = pytest.mark.filterwarnings("error")

CASES = (
    ((3, 4), (4, 5), False, False),
    ((2, 3, 4), (4, 5), False, False),
    ((2, 1, 3, 4), (1, 5, 6, 4), False, True),
    ((4, 3), (4, 5), True, False),
    ((2, 4, 3), (7, 1, 5, 4), True, True),
    ((2, 2, 2, 3, 4), (2, 4, 5), False, False),
    ((1, 1), (3, 1, 1), True, True),
    ((3, 0), (0, 2), False, False),
    ((0, 2, 3), (3, 1), False, False),
)


@pytest.mark.parametrize(("x", "y", "lhs", "rhs"), CASES)
@pytest.mark.parametrize("constant", [(), (1,)])
def test_numbers_are_those_of_litert(
    x: tuple[int, ...], y: tuple[int, ...], lhs: bool, rhs: bool, constant: tuple[int, ...]
) -> None:
    random = np.random.default_rng(5)
    pair = [random.normal(size=shape).astype(np.float32) for shape in (x, y)]
    adjoint: dict[str, Any] = {"adjoint_lhs": lhs, "adjoint_rhs": rhs}
    ours = run_reference(BatchMatMul, pair, constant, **adjoint)[0]
    theirs = run_litert(BatchMatMul, pair, constant, **adjoint)[0]
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)


NATIVE = (
    *CASES[:7],
    ((5, 40), (40, 70), False, False),
    ((3, 40, 13), (3, 40, 33), True, False),
    ((2, 1, 9, 20), (3, 7, 20), False, True),
    ((2, 6, 33), (2, 33, 37), False, False),
    ((3, 5, 70), (3, 11, 70), False, True),
    ((35, 6), (9, 35), True, True),
)


@pytest.mark.parametrize(("x", "y", "lhs", "rhs"), NATIVE)
@pytest.mark.parametrize("constant", [(), (1,)])
def test_native_equals_the_reference(
    x: tuple[int, ...], y: tuple[int, ...], lhs: bool, rhs: bool, constant: tuple[int, ...]
) -> None:
    random = np.random.default_rng(6)
    pair = [random.normal(size=shape).astype(np.float32) for shape in (x, y)]
    pair[0].reshape(-1)[0] = np.nan
    adjoint: dict[str, Any] = {"adjoint_lhs": lhs, "adjoint_rhs": rhs}
    (want,) = run_reference(BatchMatMul, pair, constant, **adjoint)
    model = one_op(BatchMatMul, pair, constant, **adjoint)
    given = dict(zip(model.graph.inputs, pair, strict=False))
    plan = compile_graph(model.graph, {value: array.shape for value, array in given.items()})
    assert plan.steps[0].native is not None
    for turn in (1.0, -2.0):
        for value, array in given.items():
            place = plan.array(value)
            assert place is not None
            place[...] = array if value is not model.graph.inputs[0] else turn * array
        plan.run()
        result = plan.array(model.graph.outputs[0])
        assert result is not None
        np.testing.assert_allclose(result, turn * want, rtol=1e-5, atol=1e-5)


INTEGERS = ((np.int8, np.int8), (np.int16, np.int16), (np.int16, np.int8))


@pytest.mark.parametrize(("x", "y", "lhs", "rhs"), NATIVE)
@pytest.mark.parametrize(("left", "right"), INTEGERS)
@pytest.mark.parametrize("constant", [(), (1,)])
def test_integers_are_those_of_litert_compiled_and_not(
    x: tuple[int, ...],
    y: tuple[int, ...],
    lhs: bool,
    rhs: bool,
    left: Any,
    right: Any,
    constant: tuple[int, ...],
) -> None:
    rng = np.random.default_rng(7)
    pair = [integers(rng, dtype, shape) for dtype, shape in ((left, x), (right, y))]
    depth = x[-2 if lhs else -1]
    points = (3, -5, 7) if left == np.int8 else (0, 0, 0)
    spread = float(np.sqrt(depth) * np.iinfo(left).max * np.iinfo(right).max)
    step = spread / np.iinfo(left).max * 0.01 * 0.02
    given: dict[str, Any] = {
        "adjoint_lhs": lhs,
        "adjoint_rhs": rhs,
        "affine": [Affine(0.01, points[0]), Affine(0.02, points[1])],
        "results": [Affine(step, points[2])],
    }
    (wanted,) = run_litert(BatchMatMul, pair, constant, **given)
    assert len(np.unique(wanted)) > min(wanted.size, 64) // 4
    np.testing.assert_array_equal(run_reference(BatchMatMul, pair, constant, **given)[0], wanted)
    np.testing.assert_array_equal(run_compiled(BatchMatMul, pair, constant, **given)[0], wanted)


def test_a_file_from_elsewhere_is_computed_as_in_litert() -> None:
    content = data_path("foreign/bmm_i16_i8.tflite").read_bytes()
    x = np.array([[[1000, -2000, 3000, 32767], [-1, 2, 3, -32768]]], np.int16)
    graph = from_bytes(content).graph
    plan = compile_graph(graph, {graph.inputs[0]: x.shape})
    assert [step.native is not None for step in plan.steps] == [True]
    place, result = (plan.array(values[0]) for values in (graph.inputs, graph.outputs))
    assert place is not None
    assert result is not None
    place[...] = x
    plan.run()
    np.testing.assert_array_equal(result, litert(content, [x])[0])


def test_not_a_number_spreads_along_its_row_only() -> None:
    x, y = np.ones((2, 3), np.float32), np.ones((3, 2), np.float32)
    x[0, 1] = np.nan
    result = run_reference(BatchMatMul, [x, y])[0]
    np.testing.assert_array_equal(result, np.array([[np.nan, np.nan], [3, 3]], np.float32))


def test_unknown_extents() -> None:
    graph = Graph()
    x, y = graph.add_input("x", (None, 1, None, 4)), graph.add_input("y", (3, 5, None))
    op = BatchMatMul(x, y, adjoint_rhs=True)
    assert op.result_shapes() == ((None, 3, None, 5),)


def test_batch_matmul_refuses_vectors() -> None:
    graph = Graph()
    op = BatchMatMul(graph.add_input("x", (3,)), graph.add_input("y", (3, 2)))
    with pytest.raises(ShapeError, match=r"x has shape \[3\], rank 2 or more is needed"):
        op.result_shapes()


def test_batch_matmul_refuses_sums_of_different_length() -> None:
    graph = Graph()
    op = BatchMatMul(graph.add_input("x", (3, 4)), graph.add_input("y", (4, 2)), adjoint_rhs=True)
    with pytest.raises(ShapeError, match="summed extent: x has 4, y has 2"):
        op.result_shapes()


def test_batch_matmul_refuses_batches_that_do_not_stretch() -> None:
    graph = Graph()
    op = BatchMatMul(graph.add_input("x", (2, 3, 4)), graph.add_input("y", (3, 4, 2)))
    with pytest.raises(ShapeError, match=r"shapes \[2\] and \[3\] do not broadcast"):
        op.result_shapes()


def test_batch_matmul_refuses_integers() -> None:
    with pytest.raises(UnsupportedError, match="no kernel for INT32; there is FLOAT32"):
        run_reference(BatchMatMul, [np.ones((2, 2), np.int32)] * 2)


@pytest.mark.parametrize("kind", [np.float32, np.int8])
@pytest.mark.parametrize("lhs", [False, True])
@pytest.mark.parametrize("rhs", [False, True])
def test_threads_share_batches(kind: Any, lhs: bool, rhs: bool) -> None:
    """``run_compiled`` compares their shares with the whole; heads of a transformer."""
    rng = np.random.default_rng(8)
    shapes = [(2, 5, 64, 72), (2, 5, 72, 48)]
    shapes = [(*s[:-2], *s[:-3:-1]) if t else s for s, t in zip(shapes, (lhs, rhs), strict=True)]
    given: dict[str, Any] = {"adjoint_lhs": lhs, "adjoint_rhs": rhs}
    if kind == np.float32:
        pair = [rng.normal(size=shape).astype(kind) for shape in shapes]
    else:
        pair = [integers(rng, kind, shape) for shape in shapes]
        given |= {"affine": [Affine(0.01, 3), Affine(0.02, -5)], "results": [Affine(0.2, 7)]}
    step, _ = built(one_op(BatchMatMul, pair, (), **given).graph.ops[0], pair)
    assert step is not None
    assert step.split is not None
    assert [len(stage) for stage in step.split(3)] == [3]
    (wanted,) = run_reference(BatchMatMul, pair, (), **given)
    (made,) = run_compiled(BatchMatMul, pair, (), **given)
    np.testing.assert_allclose(made, wanted, rtol=1e-5, atol=1e-5)
