"""SCATTER_ND against LiteRT."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import DTypeLike

from luciole.ir import Array, Graph, LucioleError, ShapeError
from luciole.ir.ops.scatter_nd import ScatterNd
from tests.litert_support import check_same, counted, ints
from tests.support import run_reference

CASES = [
    (ints([4], [3], [1], [7]), (4,), ints(8)),
    (ints([0], [2], [0]), (3, 2), ints(4, 2)),
    (ints([0, 1], [1, 2]), (2, 4), ints(2, 3, 4)),
    (ints([[0, 1]], [[0, 1]]), (2, 1), ints(2, 3)),
    (np.zeros((2, 0), np.int32), (2, 3), ints(3)),
]
every_case = pytest.mark.parametrize(("indices", "updates", "shape"), CASES)


@every_case
@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.int8, np.int32, np.int64, np.bool_])
@pytest.mark.parametrize("constant", [(2,), ()])
def test_sums_are_those_of_litert(
    indices: Array,
    updates: tuple[int, ...],
    shape: Array,
    dtype: DTypeLike,
    constant: tuple[int, ...],
) -> None:
    check_same(ScatterNd, [indices, counted(*updates, dtype=dtype), shape], constant)


def test_small_integers_do_not_saturate() -> None:
    given = [ints([1], [1]), np.array([100, 100], np.int8), ints(3)]
    assert check_same(ScatterNd, given)[0].tolist() == [0, -56, 0]


def test_unknown_dimensions_stay_unknown() -> None:
    graph = Graph()
    indices, updates = graph.add_input("indices", (None, 1)), graph.add_input("updates", (None, 3))
    shape, open_ = graph.add_input("shape", (2,)), graph.add_input("open", (None,))
    assert ScatterNd(indices, updates, shape).infer_shape() == (None, None)
    with pytest.raises(ShapeError, match="the number of extents in shape is not known"):
        ScatterNd(indices, updates, open_).infer_shape()


# LiteRT: "scatter_nd index out of bounds".
@pytest.mark.parametrize("row", [[0, 3], [1, -1], [2, 0], [-1, 5]])
@pytest.mark.parametrize("constant", [(0, 2), ()])
def test_scatter_nd_refuses_indices_out_of_range(row: list[int], constant: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match=r"is out of range: axis . of the result has . elements"):
        run_reference(ScatterNd, [ints([0, 0], row), counted(2), ints(2, 3)], constant)


@pytest.mark.parametrize(
    ("indices", "updates", "shape", "message"),
    [
        (ints([0], [1]), counted(3), ints(4), "axis 0: updates has 3, what indices and shape ask"),
        (ints([0], [1]), counted(2), ints(4, 2), r"updates has shape \[2\], \[2,2\] is needed"),
        (ints([0, 0, 0]), counted(1), ints(4, 2), "indices has 3 coordinates, the result has 2"),
        (ints([0]), counted(1), ints(-4), r"shape is \[-4\], nothing below 0 is possible"),
        (np.array(0, np.int32), counted(1), ints(4), "indices is a scalar"),
    ],
)
@pytest.mark.parametrize("constant", [(2,), ()])
def test_scatter_nd_refuses_operands_that_do_not_fit(
    indices: Any, updates: Array, shape: Array, message: str, constant: tuple[int, ...]
) -> None:
    with pytest.raises(ShapeError, match=message):
        run_reference(ScatterNd, [indices, updates, shape], constant)


def test_scatter_nd_refuses_absurd_computed_sizes() -> None:
    given = [ints([0, 0]), counted(1), ints(2**31 - 1, 2**31 - 1)]
    with pytest.raises(LucioleError, match="would take 18446744056529682436 bytes"):
        run_reference(ScatterNd, given)
