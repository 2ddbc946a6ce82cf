"""Compiled CAST, QUANTIZE and DEQUANTIZE, exactly as the references."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import DTypeLike

from luciole.ir import Array, Op, TensorType
from luciole.ir.ops.cast import Cast
from luciole.ir.ops.quantize import Dequantize, Quantize
from luciole.kernels.core import evaluation
from tests.native_support import built, check_compiled, declines, run_steps
from tests.ops.quantize_support import CHANNELS, NUMPY, TYPES, model, scales

pytestmark = pytest.mark.filterwarnings("error")

SMALL = np.random.default_rng(3).normal(0, 90, 1003)
LIMITS = [
    n + d for n in (-(2.0**31), -32768, -128, 0, 127, 255, 32767, 2.0**31) for d in (-0.5, 0, 0.5)
]
HALVES = [0.5, -0.5, 1.5, 0.49999997, -0.49999997, 2.5]
FLOATS = np.array(
    [*SMALL, *LIMITS, *HALVES, -0.0, 3e38, -3e38, np.inf, -np.inf, np.nan], np.float32
)
INTEGERS = (TensorType.INT8, TensorType.UINT8, TensorType.INT16, TensorType.INT32)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_floats_become_integers_as_in_the_reference(dtype: TensorType) -> None:
    for x in (FLOATS, FLOATS[:3], FLOATS[:0], np.tile(FLOATS, 60)):
        check_compiled(Cast, [x], in_data_type=TensorType.FLOAT32, out_data_type=dtype)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32])
def test_integers_become_floats_as_in_the_reference(dtype: DTypeLike) -> None:
    limits = np.iinfo(np.dtype(dtype))
    x = np.array([limits.min, limits.max, 0, 1, *np.abs(SMALL).astype(int) % 128], dtype)
    check_compiled(Cast, [x], out_data_type=TensorType.FLOAT32)


def test_cast_leaves_other_pairs_of_types_to_the_reference() -> None:
    assert declines(Cast, [np.ones(2, np.int64)], out_data_type=TensorType.FLOAT64)
    assert declines(Cast, [np.ones(2, np.float32)], out_data_type=TensorType.FLOAT16)


def check(cls: type[Op], x: Array, dtype: TensorType, scale: float, zero_point: int) -> None:
    op = model(cls, x, dtype, scales([scale], [zero_point])).graph.ops[0]
    step, context = built(op, [x])
    assert step is not None
    run_steps(step, [step.record])
    wanted = evaluation.computed(op, [x])[0]
    np.testing.assert_array_equal(context.results[0], wanted, strict=True)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("scale", [0.0371, 1.0, 3e-6, 5e20])
@pytest.mark.parametrize("zero_point", [0, 100])
def test_quantize_and_dequantize_are_those_of_the_reference(
    dtype: TensorType, scale: float, zero_point: int
) -> None:
    check(Quantize, FLOATS, dtype, scale, zero_point)
    check(Quantize, FLOATS[:5], dtype, scale, zero_point)
    check(Dequantize, np.abs(SMALL).astype(int).astype(NUMPY[dtype]), dtype, scale, zero_point)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("scale", [0.0371, 1 / 3, 0.25, 3e-6, 5e20, 2.0**-110, 7e-44])
def test_numbers_next_to_halves_of_a_scale_are_rounded_like_the_reference(
    dtype: TensorType, scale: float
) -> None:
    """Alone among others, where one decides about all that are quantized together, and in a row."""
    halves = np.arange(-600, 600, dtype=np.float32) / 2 * np.float32(scale)
    around = halves.view(np.int32)[:, None] + np.arange(-3, 4, dtype=np.int32)
    close = around.view(np.float32).reshape(-1)
    spread = np.where(np.arange(64 * len(close)) % 64 == 5, np.repeat(close, 64), np.float32(scale))
    for x in (close, spread):
        check(Quantize, x[np.isfinite(x)], dtype, scale, 3)


def test_scales_of_channels_are_left_to_the_reference() -> None:
    x = np.ones((3, 2), np.float32)
    op = model(Quantize, x, TensorType.INT8, scales(CHANNELS, (0, 0, 0))).graph.ops[0]
    assert built(op, [x])[0] is None


def test_quantize_leaves_missing_scales_to_the_reference() -> None:
    x = np.ones((3, 2), np.float32)
    op = model(Quantize, x, TensorType.INT8, scales(None)).graph.ops[0]
    assert built(op, [x])[0] is None
