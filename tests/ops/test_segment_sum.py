"""SEGMENT_SUM against LiteRT."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import DTypeLike

from luciole.ir import Graph, ShapeError, TensorType
from luciole.ir.ops.segment_sum import SegmentSum
from tests.litert_support import check_same, counted, ints
from tests.support import one_op, run_reference


@pytest.mark.parametrize("ids", [[0, 0, 0, 0], [0, 1, 2, 3], [0, 0, 1, 2]])
@pytest.mark.parametrize("shape", [(4,), (4, 3), (4, 1, 2)])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize("constant", [(1,), ()])
def test_sums_are_those_of_litert(
    ids: list[int], shape: tuple[int, ...], dtype: DTypeLike, constant: tuple[int, ...]
) -> None:
    # LiteRT's reference resolver does not know the operator, its usual one does.
    check_same(SegmentSum, [counted(*shape, dtype=dtype), ints(*ids)], constant, "AUTO")


def test_nothing_has_no_segments() -> None:
    given = [np.zeros((0, 3), np.float32), np.zeros(0, np.int32)]
    assert run_reference(SegmentSum, given)[0].shape == (0, 3)


def test_the_number_of_segments_is_known_from_constants_alone() -> None:
    graph = Graph()
    x, ids = graph.add_input("x", (None, 3)), graph.add_input("ids", (None,), TensorType.INT32)
    assert SegmentSum(x, ids).infer_shape() == (None, 3)
    assert SegmentSum(x, graph.add_constant("c", ints(0, 1, 1))).infer_shape() == (2, 3)


# LiteRT: "delta == 0 || delta == 1 was not true".
@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([0, 2], "segment_ids has 2 after 0: they start at 0 and grow by 0 or 1"),
        ([1, 1], "segment_ids has 1 first"),
        ([-1, 0], "segment_ids has -1 first"),
        ([0, -1], "segment_ids has -1 after 0"),
    ],
)
@pytest.mark.parametrize("constant", [(1,), ()])
def test_segment_sum_refuses_ids_that_do_not_follow(
    ids: list[int], message: str, constant: tuple[int, ...]
) -> None:
    with pytest.raises(ShapeError, match=message):
        run_reference(SegmentSum, [counted(2, 3), ints(*ids)], constant)


def test_segment_sum_refuses_ids_for_other_rows() -> None:
    with pytest.raises(ShapeError, match="elements: segment_ids has 2, the first axis has 3"):
        one_op(SegmentSum, [counted(3, 3), ints(0, 0)])
    with pytest.raises(ShapeError, match="input is a scalar, rows are needed"):
        one_op(SegmentSum, [np.array(1, np.float32), ints(0)])
