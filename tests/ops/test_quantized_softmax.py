"""SOFTMAX and LOG_SOFTMAX of quantized tensors against LiteRT."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from luciole.exporters import to_bytes
from luciole.ir import Array, LucioleError, Op, TensorType
from luciole.ir.dtypes import NUMPY
from luciole.ir.ops.softmax import LogSoftmax, Softmax
from luciole.kernels.core import evaluation
from tests.native_support import built, check_compiled, declines
from tests.support import Affine, litert, one_op, run_litert, run_reference

pytestmark = pytest.mark.filterwarnings("error")

INT8, UINT8, INT16 = TensorType.INT8, TensorType.UINT8, TensorType.INT16
SHAPES = ((1,), (4, 10), (2, 3, 33), (7, 300), (0, 5), (1, 1, 2, 1))
RESULTS = {
    (Softmax, INT8): Affine(1 / 256, -128),
    (Softmax, UINT8): Affine(1 / 256, 0),
    (Softmax, INT16): Affine(1 / 32768, 0),
    (LogSoftmax, INT8): Affine(16 / 256, 127),
    (LogSoftmax, UINT8): Affine(16 / 256, 255),
}


def logits(dtype: TensorType, *shape: int) -> Array:
    """Integers of all sizes; the last row is full of the lowest one, where there are several."""
    limits, rng = np.iinfo(NUMPY[dtype]), np.random.default_rng(sum(shape))
    x = rng.integers(limits.min, limits.max, shape, limits.dtype, endpoint=True)
    if len(shape) > 1 and shape[0] > 1:
        x[-1] = limits.min
    return x


def given(cls: type[Op], dtype: TensorType, scale: float) -> dict[str, Any]:
    point = 0 if dtype == INT16 else 7
    return {"affine": [Affine(scale, point)], "results": [RESULTS[cls, dtype]]}


@pytest.mark.parametrize("scale", [0.003, 0.02, 0.1, 0.5, 3.0, 15.999, 16.0, 40.0, 1e4])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("cls", "dtype"), RESULTS)
def test_quantized_rows_are_those_of_litert(
    cls: type[Op], dtype: TensorType, shape: tuple[int, ...], scale: float
) -> None:
    x = logits(dtype, *shape)
    scale = scale / 100 if dtype == INT16 else scale
    keywords: dict[str, Any] = {"beta": 1.0} if cls is Softmax else {}
    keywords |= given(cls, dtype, scale)
    ours = run_reference(cls, [x], **keywords)[0]
    if cls is Softmax:
        check_compiled(cls, [x], **keywords)
    np.testing.assert_array_equal(ours, run_litert(cls, [x], **keywords)[0], strict=True)


@pytest.mark.parametrize("dtype", [INT8, UINT8, INT16])
@pytest.mark.parametrize("beta", [0.1, 2.5, 320.0])
def test_beta_is_that_of_litert(dtype: TensorType, beta: float) -> None:
    x, keywords = logits(dtype, 5, 20), given(Softmax, dtype, 0.001 if dtype == INT16 else 0.05)
    ours, theirs = (
        run(Softmax, [x], beta=beta, **keywords)[0] for run in (run_reference, run_litert)
    )
    np.testing.assert_array_equal(ours, theirs)
    check_compiled(Softmax, [x], beta=beta, **keywords)


@pytest.mark.parametrize("n", [300, 600, 5000, 10_000])
def test_long_rows_of_equal_numbers_are_those_of_the_reference(n: int) -> None:
    # LiteRT ends the process from 512 on
    check_compiled(Softmax, [np.full((2, n), 5, np.int8)], beta=1.0, **given(Softmax, INT8, 0.1))


@pytest.mark.parametrize("dtype", [INT8, UINT8])
def test_results_of_16_bits_are_those_of_litert(dtype: TensorType) -> None:
    x, grid = logits(dtype, 7, 30), Affine(2.0**-16, -(2**15), 0, INT16)
    model = one_op(Softmax, [x], beta=1.0, affine=[Affine(0.05, 3)], results=[grid])
    op = model.graph.ops[0]
    assert op.result_dtypes() == (INT16,)
    theirs = litert(to_bytes(model, "tflite"), [x])[0]
    ours = evaluation.computed(op, [x])[0]
    np.testing.assert_array_equal(ours, theirs, strict=True)
    assert built(op, [x])[0] is None


def test_softmax_leaves_what_is_wrong_to_the_reference() -> None:
    assert declines(Softmax, [logits(INT8, 2, 3)], **given(Softmax, INT8, 0.1))


def test_quantized_softmax_refuses_other_results() -> None:
    keywords: dict[str, Any] = {"affine": [Affine(0.1)], "results": [Affine(0.1, 3)]}
    message = "the result has scale 0.1.* and zero point 3; 0.00390625 and -128 are needed"
    with pytest.raises(LucioleError, match=message):
        run_reference(Softmax, [logits(INT8, 2, 3)], beta=1.0, **keywords)


def test_quantized_softmax_refuses_a_beta_of_0() -> None:
    with pytest.raises(LucioleError, match=r"beta is 0\.0; quantized tensors need one above 0"):
        run_reference(Softmax, [logits(INT8, 2, 3)], **given(Softmax, INT8, 0.1))
