"""CAST: numbers against LiteRT, every pair of types."""

from typing import Any

import numpy as np
import pytest

from luciole.interpreter import Interpreter
from luciole.ir import Array, TensorType, UnsupportedError
from luciole.ir.ops.cast import Cast
from tests.support import invoked_again, one_op, run_litert, run_reference

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
    TensorType.UINT32: wrapped((*INTEGERS, *LARGE), np.uint32),
    TensorType.UINT16: wrapped(INTEGERS, np.uint16),
    TensorType.BOOL: np.array([[True], [False]]),
    TensorType.FLOAT16: np.array([0.3, -1.9, 2.5, 65504, -65504, 6e-8, *FLOATS[-3:]], np.float16),
    TensorType.FLOAT64: np.array((*INTEGERS, *LARGE, *FLOATS), np.float64),
    TensorType.COMPLEX64: np.array([0.3, -1.9 + 2j, 3j, 300, -3e9, 1e20, np.nan], np.complex64),
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
        UnsupportedError, match="no cast to COMPLEX128; there is FLOAT32, FLOAT16, FLOAT64"
    ):
        run_reference(Cast, [x], out_data_type=TensorType.COMPLEX128)
    with pytest.raises(UnsupportedError, match="no kernel for COMPLEX128; there is BOOL, COMPLEX"):
        run_reference(Cast, [x.astype(np.complex128)], out_data_type=TensorType.FLOAT32)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8])
def test_64_bits_without_a_sign_are_cast_as_well(dtype: type[np.generic]) -> None:
    x = np.array([0, 3, 200]).astype(dtype)  # LiteRT has no such type here
    there = run_reference(Cast, [x], out_data_type=TensorType.UINT64)[0]
    np.testing.assert_array_equal(there, np.array([0, 3, 200], np.uint64), strict=True)
    here = np.array([2**64 - 1, 2**63, 5], np.uint64)
    back = run_reference(Cast, [here], out_data_type=TensorType.INT32)[0]
    np.testing.assert_array_equal(back, np.array([-1, 0, 5], np.int32), strict=True)


COMPILED = [t for t in INPUTS if t.name in ("FLOAT32", "INT32", "INT64", "INT16", "INT8", "UINT8")]


@pytest.mark.parametrize("source", [*COMPILED, TensorType.BOOL])
@pytest.mark.parametrize("target", [*COMPILED, TensorType.BOOL])
def test_floats_integers_and_truths_are_cast_by_compiled_kernels(
    source: TensorType, target: TensorType
) -> None:
    if source == target:
        return
    types: dict[str, Any] = {"in_data_type": source, "out_data_type": target}
    x = np.tile(INPUTS[source].reshape(-1), 7)
    interpreter = Interpreter(one_op(Cast, [x], **types))
    (found,) = invoked_again(interpreter, [x])
    assert [step.reason for step in interpreter.plan.steps] == [""]
    np.testing.assert_array_equal(found, run_reference(Cast, [x], **types)[0], strict=True)
