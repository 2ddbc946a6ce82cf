"""UNSORTED_SEGMENT_SUM, _PROD, _MAX and _MIN against LiteRT."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import DTypeLike

from luciole.ir import Array, Graph, LucioleError, Op, ShapeError
from luciole.ir.ops.unsorted_segment import (
    UnsortedSegmentMax,
    UnsortedSegmentMin,
    UnsortedSegmentProd,
    UnsortedSegmentSum,
)
from tests.litert_support import check_same, counted, ints
from tests.support import one_op, run_reference

CLASSES = [UnsortedSegmentSum, UnsortedSegmentProd, UnsortedSegmentMax, UnsortedSegmentMin]
every_class = pytest.mark.parametrize("cls", CLASSES)
X = counted(3, 2, 2) - 5


@every_class
@pytest.mark.parametrize(
    "ids", [ints(2, 0, 2), ints(-1, 1, -7), ints([0, 1], [1, 1], [-1, 0]), ints(3, 3, 3)]
)
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize("constant", [(2,), (1, 2), ()])
def test_segments_are_those_of_litert(
    cls: type[Op], ids: Array, dtype: DTypeLike, constant: tuple[int, ...]
) -> None:
    check_same(cls, [X.astype(dtype), ids, np.array(4, np.int32)], constant)


@pytest.mark.parametrize("cls", [UnsortedSegmentMax, UnsortedSegmentMin])
@pytest.mark.parametrize("constant", [(2,), (1, 2)])
def test_segments_leave_out_nan_like_litert(cls: type[Op], constant: tuple[int, ...]) -> None:
    nan, inf = np.nan, np.inf
    x = np.array([1, nan, nan, 2, nan, -inf, nan, inf], np.float32)
    check_same(cls, [x, ints(0, 0, 1, 1, 2, 3, 3, 4), np.array(6, np.int32)], constant)


def test_unknown_dimensions_stay_unknown() -> None:
    graph = Graph()
    x, ids = graph.add_input("x", (None, 3, None)), graph.add_input("ids", (None, 3))
    count, known = graph.add_input("n", ()), graph.add_constant("k", np.array(5, np.int32))
    assert UnsortedSegmentSum(x, ids, count).infer_shape() == (None, None)
    assert UnsortedSegmentSum(x, ids, known).infer_shape() == (5, None)


# LiteRT: "max_index < num_segments_ was not true".
@every_class
def test_unsorted_segment_refuses_ids_beyond_the_segments(cls: type[Op]) -> None:
    with pytest.raises(ShapeError, match="index 4 is out of range: the result has 4 elements"):
        run_reference(cls, [X, ints(0, 4, -1), np.array(4, np.int32)])


@every_class
@pytest.mark.parametrize(
    ("ids", "count", "message"),
    [
        (ints(0, 0), 2, "axis 0: segment_ids has 2, input has 3"),
        (ints([[[0]]]), 2, r"segment_ids is \[1,1,1,1\], input is \[3,2,2\]"),
        (ints(0, 0, 0), -1, "num_segments is -1, nothing below 0 is possible"),
        (ints(0, 0, 0), [1, 2], "elements: num_segments has 2, a number has 1"),
    ],
)
def test_unsorted_segment_refuses_operands_that_do_not_fit(
    cls: type[Op], ids: Array, count: object, message: str
) -> None:
    with pytest.raises(ShapeError, match=message):
        one_op(cls, [X, ids, np.array(count, np.int32)], (2,))


def test_unsorted_segment_refuses_absurd_computed_sizes() -> None:
    given = [counted(1), ints(0), np.array(2**31 - 1, np.int32)]
    with pytest.raises(LucioleError, match="would take 8589934588 bytes"):
        run_reference(UnsortedSegmentSum, given)
