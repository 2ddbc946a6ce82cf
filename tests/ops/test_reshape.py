"""RESHAPE against LiteRT."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from luciole.ir import Array, Graph, ShapeError
from luciole.ir.ops.reshape import Reshape, reshaped
from tests.support import one_op, run_litert, run_reference

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize("wanted", [[24], [4, 6], [-1], [2, -1, 3], [1, 2, 3, 4, 1], [6, 4, -1]])
@pytest.mark.parametrize("constant", [(1,), ()])
def test_reshape_gives_what_litert_gives(wanted: list[int], constant: tuple[int, ...]) -> None:
    arrays = [X, np.array(wanted, np.int32)]
    ours, theirs = (run(Reshape, arrays, constant)[0] for run in (run_reference, run_litert))
    np.testing.assert_array_equal(ours, theirs, strict=True)
    assert not np.shares_memory(ours, X)


@pytest.mark.parametrize(
    ("x", "new_shape"),
    [(X, (4, 6)), (X, (-1, 8)), (X[:1, :1, :1], (0,)), (X[:1, :1, :1], ())],
)
def test_reshape_by_attribute_gives_what_litert_gives(x: Array, new_shape: tuple[int, ...]) -> None:
    ours, theirs = (
        run(Reshape, [x], new_shape=new_shape)[0] for run in (run_reference, run_litert)
    )
    np.testing.assert_array_equal(ours, theirs, strict=True)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int64, np.bool_])
def test_reshape_takes_every_type(dtype: type[np.generic]) -> None:
    (y,) = run_reference(Reshape, [X.astype(dtype), np.array([6, 4], np.int64)])
    np.testing.assert_array_equal(y, X.astype(dtype).reshape(6, 4), strict=True)


def test_reshape_to_a_scalar() -> None:
    (y,) = run_reference(Reshape, [X[:1, :1, :1], np.zeros(0, np.int32)], (1,))
    assert y.shape == ()


@pytest.mark.parametrize(
    ("shape", "wanted", "result"),
    [
        ((0, 3), [-1, 5], (0, 5)),
        ((0, 3), [3, 0], (3, 0)),
        ((0, 3), [-1, 0], (3, 0)),
        ((2, 0, 5), [0, -1, 2], (0, 5, 2)),
        ((None, 28, 28), [-1, 784], (None, 784)),
        ((None, 4), [2, 2], (2, 2)),
        ((), [-1], (1,)),
    ],
)
def test_reshape_finds_the_shape(
    shape: tuple[int | None, ...], wanted: list[int], result: tuple[int | None, ...]
) -> None:
    assert reshaped(shape, wanted) == result


@pytest.mark.parametrize(
    ("shape", "wanted"), [((0, 3), [-1, 5]), ((0, 3), [3, 0]), ((0, 3), [-1, 0])]
)
def test_reshape_of_nothing_finds_the_shape_that_litert_finds(
    shape: tuple[int, ...], wanted: list[int]
) -> None:
    arrays = [np.zeros(shape, np.float32), np.array(wanted, np.int32)]
    assert reshaped(shape, wanted) == run_litert(Reshape, arrays, (1,))[0].shape


def test_reshape_knows_the_rank_where_the_shape_is_computed() -> None:
    graph = Graph()
    x = graph.add_input("x", (None, 4))
    assert Reshape(x, graph.add_input("shape", (3,))).infer_shape() == (None, None, None)


def test_reshape_takes_the_rank_from_the_file_where_nothing_else_tells_it() -> None:
    graph = Graph()
    op = Reshape(graph.add_input("x", (6,)), graph.add_input("shape", (None,)))
    with pytest.raises(ShapeError, match="the rank of the result is unknown"):
        op.infer_shape()
    graph.append(op, results=[graph.add_input("y", (2, 3))])
    assert op.infer_shape() == (None, None)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ([5, 5], r"\[2,3,4\] does not reshape to \[5, 5\]"),
        ([-1, 5], r"\[2,3,4\] does not reshape to \[-1, 5\]"),
        ([0, -1], r"\[2,3,4\] does not reshape to \[0, -1\]"),
        ([-1, -1], r"the new shape is \[-1, -1\]: extents are 0 or more, one of them may be -1"),
        ([-2, 12], r"the new shape is \[-2, 12\]"),
    ],
)
@pytest.mark.parametrize("constant", [(1,), ()])
def test_reshape_refuses_shapes_that_do_not_fit(
    wanted: list[int], message: str, constant: tuple[int, ...]
) -> None:
    with pytest.raises(ShapeError, match=message):
        run_reference(Reshape, [X, np.array(wanted, np.int32)], constant)


@pytest.mark.parametrize("shape", [[[2, 12]], 24])
def test_reshape_goes_by_the_attribute_where_the_shape_is_no_vector(shape: Any) -> None:
    arrays = [X, np.array(shape, np.int32)]
    ours, theirs = (
        run(Reshape, arrays, (1,), new_shape=(6, 4))[0] for run in (run_reference, run_litert)
    )
    np.testing.assert_array_equal(ours, theirs, strict=True)
    assert ours.shape == (6, 4)


def test_reshape_refuses_an_attribute_that_does_not_fit() -> None:
    with pytest.raises(ShapeError, match=r"Reshape '': \[2,3,4\] does not reshape to \[7\]"):
        one_op(Reshape, [X], new_shape=(7,))
