"""GATHER_ND against LiteRT."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import DTypeLike

from luciole.ir import Array, Graph, LucioleError, ShapeError
from luciole.ir.ops.gather_nd import GatherNd
from luciole.kernels.core import evaluation
from tests.litert_support import check_same, counted, ints
from tests.support import one_op, run_reference

X = counted(2, 3, 4)
INDICES = [
    ints([0], [1], [1]),
    ints([1, 2], [0, 0]),
    ints([1, 2, 3], [0, 0, 0], [1, 1, 1]),
    ints(1, 2),
    ints([[0, 1]], [[1, 1]], [[1, 2]]),
]


@pytest.mark.parametrize("indices", INDICES)
@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.int8, np.int16, np.int32, np.int64])
@pytest.mark.parametrize("index", [np.int16, np.int32, np.int64])
def test_parts_are_those_of_litert(indices: Array, dtype: DTypeLike, index: DTypeLike) -> None:
    check_same(GatherNd, [X.astype(dtype), indices.astype(index)])


# LiteRT: "gather_nd index out of bounds"; TensorFlow gives this.
def test_no_coordinates_pick_everything() -> None:
    (y,) = run_reference(GatherNd, [X, np.zeros((2, 0), np.int32)])
    np.testing.assert_array_equal(y, np.stack([X, X]), strict=True)


def test_no_indices_pick_nothing() -> None:
    assert run_reference(GatherNd, [X, np.zeros((0, 2), np.int32)])[0].shape == (0, 4)


def test_unknown_dimensions_stay_unknown() -> None:
    graph = Graph()
    x, indices = graph.add_input("x", (None, 3, None)), graph.add_input("i", (None, 2))
    assert GatherNd(x, indices).infer_shape() == (None, None)
    op = GatherNd(x, graph.add_input("j", (4, None)))
    with pytest.raises(ShapeError, match="the number of coordinates in indices is not known"):
        op.infer_shape()


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([0, 3], "index 3 is out of range: axis 1 of params has 3 elements"),
        ([0, -1], "index -1 is out of range: axis 1 of params"),
        ([2**40, 0], "index 1099511627776 is out of range: axis 0 of params has 2"),
    ],
)
@pytest.mark.parametrize("constant", [(1,), ()])
def test_gather_nd_refuses_indices_out_of_range(
    row: list[int], message: str, constant: tuple[int, ...]
) -> None:
    with pytest.raises(ShapeError, match=message):
        run_reference(GatherNd, [X, np.array([[0, 0], row], np.int64)], constant)


def test_gather_nd_refuses_more_coordinates_than_axes() -> None:
    with pytest.raises(ShapeError, match="indices has 4 coordinates, params has 3 axes"):
        one_op(GatherNd, [X, np.zeros((1, 4), np.int32)])
    with pytest.raises(ShapeError, match="indices is a scalar, an axis of coordinates is needed"):
        one_op(GatherNd, [X, np.array(0, np.int32)])


def test_gather_nd_refuses_absurd_computed_sizes() -> None:
    model = one_op(GatherNd, [X, np.zeros((1, 0), np.int32)])
    op = model.graph.ops[0]
    op.results[0].shape = (None, 2, 3, 4)
    indices = np.broadcast_to(np.zeros((1, 0), np.int32), (2**40, 0))
    with pytest.raises(LucioleError, match="would take 105553116266496 bytes"):
        evaluation.computed(op, [X, indices])
