"""HASHTABLE_LOOKUP against LiteRT."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import DTypeLike

from luciole.ir import Array, Graph, ShapeError, TensorType
from luciole.ir.ops.hashtable_lookup import HashtableLookup
from tests.litert_support import check_same, counted, ints
from tests.support import one_op, run_reference

KEYS = ints(-4, 0, 11)


@pytest.mark.parametrize("lookup", [ints(0, 11, -4), ints(5, 0, 12, -5), ints(3)])
@pytest.mark.parametrize("shape", [(3,), (3, 2), (3, 2, 2)])
@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.int32])
def test_rows_are_those_of_litert(lookup: Array, shape: tuple[int, ...], dtype: DTypeLike) -> None:
    check_same(HashtableLookup, [lookup, KEYS, counted(*shape, dtype=dtype)])


def test_no_keys_hit_nothing() -> None:
    given = [ints(1, 2), np.zeros(0, np.int32), np.zeros((0, 2), np.float32)]
    rows, hits = run_reference(HashtableLookup, given)
    assert (rows.tolist(), hits.tolist()) == ([[0, 0], [0, 0]], [0, 0])


def test_unknown_dimensions_stay_unknown() -> None:
    graph = Graph()
    lookup, key = (graph.add_input(name, (None,), TensorType.INT32) for name in "lk")
    op = HashtableLookup(lookup, key, graph.add_input("v", (7, None)))
    assert op.result_shapes() == ((None, None), (None,))
    assert op.result_dtypes() == (TensorType.FLOAT32, TensorType.UINT8)


def test_hashtable_lookup_refuses_keys_that_are_not_sorted() -> None:
    with pytest.raises(ShapeError, match="key is not sorted, it must be"):
        run_reference(HashtableLookup, [ints(1), ints(3, 1), counted(2)])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (counted(2), "rows: key has 3, value has 2"),
        (np.array(1, np.float32), "value is a scalar, rows are needed"),
    ],
)
def test_hashtable_lookup_refuses_other_rows(value: Array, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        one_op(HashtableLookup, [ints(1), KEYS, value])
