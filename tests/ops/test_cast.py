"""CAST: numbers against LiteRT, every pair of types."""

from typing import Any

import numpy as np
import pytest

from luciole.ir import Array, TensorType, UnsupportedError
from luciole.ir.ops.cast import Cast
from tests.support import run_litert, run_reference

pytestmark = pytest.mark.filterwarnings("error")

INTEGERS = (0, 1, -1, 127, 128, -128, -129, 255, 300, -300, 32767, 32768, -32769, 65536 + 5)
LARGE = (2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**40 + 5, 2**63 - 1, -(2**63))
FLOATS = (0.3, -0.3, -0.0, 1.9, -1.9, 2.5, 1e-40, 3e9, -3e9, 1e20, -1e20, np.inf, -np.inf, np.nan)


def wrapped(numbers: tuple[int, ...], dtype: type) -> Array:
    """The integers as they fit into a type."""
    return np.array(numbers, np.int64).astype(dtype)


INPUTS: dict[TensorType, Array] = {
    TensorType.FLOAT32: np.array((*INTEGERS, *LARGE, *FLOATS), np.float32),
    TensorType.INT32: wrapped((*INTEGERS, *LARGE), np.int32),
    TensorType.INT64: wrapped((*INTEGERS, *LARGE), np.int64),
    TensorType.INT16: wrapped(INTEGERS, np.int16),
    TensorType.INT8: wrapped(INTEGERS, np.int8),
    TensorType.UINT8: wrapped(INTEGERS, np.uint8),
    TensorType.BOOL: np.array([[True], [False]]),
}


@pytest.mark.parametrize("source", INPUTS)
@pytest.mark.parametrize("target", INPUTS)
def test_every_pair_is_that_of_litert(source: TensorType, target: TensorType) -> None:
    types: dict[str, Any] = {"in_data_type": source, "out_data_type": target}
    ours, theirs = (run(Cast, [INPUTS[source]], **types)[0] for run in (run_reference, run_litert))
    assert ours.dtype == theirs.dtype
    np.testing.assert_array_equal(ours, theirs)
    assert not np.shares_memory(ours, INPUTS[source])


def test_scalars_and_empty_tensors() -> None:
    types: dict[str, Any] = {"out_data_type": TensorType.INT8}
    assert run_reference(Cast, [np.array(-7.9, np.float32)], **types)[0] == -7
    assert run_reference(Cast, [np.zeros((2, 0), np.float32)], **types)[0].shape == (2, 0)


def test_cast_refuses_other_types() -> None:
    x = np.ones(2, np.float32)
    with pytest.raises(
        UnsupportedError, match="no cast to COMPLEX64; there is FLOAT32, INT32, INT64"
    ):
        run_reference(Cast, [x], out_data_type=TensorType.COMPLEX64)
    with pytest.raises(UnsupportedError, match="no kernel for COMPLEX64; there is BOOL, FLOAT32"):
        run_reference(Cast, [x.astype(np.complex64)], out_data_type=TensorType.FLOAT32)
