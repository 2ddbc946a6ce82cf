"""BUCKETIZE against LiteRT."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import DTypeLike

from luciole.ir import Graph, LucioleError, TensorType
from luciole.ir.ops.bucketize import Bucketize
from tests.litert_support import check_same, counted
from tests.support import run_reference


@pytest.mark.parametrize("boundaries", [(1.0, 5.5, 5.5, 20.0), (-0.1,), ()])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
def test_buckets_are_those_of_litert(boundaries: tuple[float, ...], dtype: DTypeLike) -> None:
    x = (counted(2, 3, 4) - 4).astype(dtype)
    check_same(Bucketize, [x], boundaries=boundaries)


def test_float_boundaries_meet_their_own_kind() -> None:
    x = np.array([0.1, np.nextafter(np.float32(0.1), 0), np.nan, np.inf, -np.inf], np.float32)
    check_same(Bucketize, [x], boundaries=(0.1, 3.0))
    check_same(Bucketize, [np.array([0.1, 0.1000001])], boundaries=(0.1, 3.0))


def test_the_result_is_int32_of_the_same_shape() -> None:
    op = Bucketize(Graph().add_input("x", (None, 3)))
    assert (op.infer_shape(), op.infer_dtype()) == ((None, 3), TensorType.INT32)


@pytest.mark.parametrize("boundaries", [(1.0, 0.5), (0.0, float("nan"))])
def test_bucketize_refuses_boundaries_that_are_not_sorted(boundaries: tuple[float, ...]) -> None:
    with pytest.raises(LucioleError, match=r"boundaries has .* after .*: they must be sorted"):
        run_reference(Bucketize, [counted(3)], boundaries=boundaries)
