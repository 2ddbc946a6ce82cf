"""WHERE against LiteRT."""

import numpy as np
import pytest
from numpy.typing import DTypeLike

from luciole.ir import Graph, TensorType
from luciole.ir.ops.where import Where
from tests.support import run_litert, run_reference


@pytest.mark.parametrize(
    "dtype", [np.bool_, np.float32, np.int32, np.int64, np.int8, np.uint8, np.uint32]
)
@pytest.mark.parametrize("shape", [(7,), (3, 5), (2, 1, 3, 4)])
def test_places_are_those_of_litert(dtype: DTypeLike, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).integers(0, 2, shape).astype(dtype)
    ours, theirs = run_reference(Where, [x])[0], run_litert(Where, [x])[0]
    np.testing.assert_array_equal(ours, theirs, strict=True)


def test_nan_is_not_zero_as_in_litert() -> None:
    x = np.array([np.nan, 0, -0.0, 1e-40], np.float32)
    ours, theirs = run_reference(Where, [x])[0], run_litert(Where, [x])[0]
    np.testing.assert_array_equal(ours, theirs, strict=True)


@pytest.mark.parametrize("shape", [(2, 3), (2, 0), ()])
def test_nothing_is_found_in_zeros(shape: tuple[int, ...]) -> None:
    (found,) = run_reference(Where, [np.zeros(shape, np.bool_)])
    np.testing.assert_array_equal(found, np.zeros((0, len(shape)), np.int64), strict=True)


def test_only_the_number_of_places_is_unknown() -> None:
    op = Where(Graph().add_input("x", (None, 2), TensorType.BOOL))
    assert op.result_shapes() == ((None, 2),)
