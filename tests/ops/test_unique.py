"""UNIQUE against LiteRT."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import DTypeLike

from luciole.ir import Graph, ShapeError, TensorType, UnsupportedError
from luciole.ir.ops.unique import Unique
from tests.litert_support import check_same
from tests.support import one_op, run_reference


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint8, np.int16, np.int32, np.int64])
@pytest.mark.parametrize("index", [TensorType.INT32, TensorType.INT64])
@pytest.mark.parametrize("n", [1, 5, 60])
def test_elements_are_those_of_litert(dtype: DTypeLike, index: TensorType, n: int) -> None:
    x = np.random.default_rng(n).integers(0, 20, n).astype(dtype)
    check_same(Unique, [x], idx_out_type=index)


def test_zeros_are_one_element() -> None:
    values, places = check_same(Unique, [np.array([3, -0.0, 0.0, 3], np.float32)])
    assert (values.tolist(), places.tolist()) == ([3, 0], [0, 1, 1, 0])


# LiteRT takes NaN for whatever it compares it with first.
def test_nan_is_one_element() -> None:
    values, places = run_reference(Unique, [np.array([2, np.nan, 1, np.nan], np.float32)])
    np.testing.assert_array_equal(values, np.array([2, np.nan, 1], np.float32))
    assert places.tolist() == [0, 1, 2, 1]


def test_nothing_has_no_elements() -> None:
    values, places = run_reference(Unique, [np.zeros(0, np.float32)])
    assert (values.shape, places.shape) == ((0,), (0,))


def test_the_number_of_elements_is_unknown() -> None:
    op = Unique(Graph().add_input("x", (7,)), idx_out_type=TensorType.INT64)
    assert op.result_shapes() == ((None,), (7,))
    assert op.result_dtypes() == (TensorType.FLOAT32, TensorType.INT64)


def test_unique_refuses_matrices() -> None:
    with pytest.raises(ShapeError, match=r"input has shape \[2,2\], rank 1 is needed"):
        one_op(Unique, [np.zeros((2, 2), np.float32)])


def test_unique_refuses_places_that_are_no_indices() -> None:
    with pytest.raises(UnsupportedError, match="idx_out_type is INT8, not INT32 or INT64"):
        run_reference(Unique, [np.zeros(2, np.float32)], idx_out_type=TensorType.INT8)
