"""Pools of quantized tensors against LiteRT."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from luciole.ir import Array, TensorType
from luciole.ir.dtypes import NUMPY
from luciole.ir.ops.pool_2d import AveragePool2D, MaxPool2D, Pool2D
from luciole.schema.enums import ActivationFunctionType, Padding
from tests.native_support import check_compiled, declines
from tests.support import Affine, run_litert, run_reference

pytestmark = pytest.mark.filterwarnings("error")

TYPES = (TensorType.INT8, TensorType.UINT8, TensorType.INT16)
CLASSES = (AveragePool2D, MaxPool2D)
CASES = (
    ((1, 4, 4, 3), (2, 2), (2, 2), Padding.VALID),
    ((2, 5, 7, 17), (3, 2), (1, 2), Padding.SAME),
    ((1, 6, 5, 40), (6, 5), (6, 5), Padding.VALID),
    ((1, 9, 9, 16), (5, 5), (3, 3), Padding.SAME),
    ((0, 4, 4, 3), (2, 2), (1, 1), Padding.VALID),
    ((3, 25, 25, 64), (25, 5), (25, 5), Padding.VALID),
    ((2, 5, 7, 64 + 17), (3, 2), (2, 1), Padding.SAME),
    ((1, 4, 6, 128), (2, 2), (2, 2), Padding.VALID),
)
"""Shape, window, strides (height, width) and padding."""


def image(dtype: TensorType, shape: tuple[int, ...]) -> Array:
    limits, rng = np.iinfo(NUMPY[dtype]), np.random.default_rng(sum(shape))
    return rng.integers(limits.min, limits.max, shape, limits.dtype, endpoint=True)


def pooled(case: tuple[Any, ...], activation: str = "NONE") -> dict[str, Any]:
    _, (height, width), (down, across), padding = case
    sizes = {"filter_height": height, "filter_width": width, "stride_h": down, "stride_w": across}
    return {"padding": padding, "activation": ActivationFunctionType[activation], **sizes}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("cls", CLASSES)
def test_quantized_pools_are_those_of_litert(
    cls: type[Pool2D], dtype: TensorType, case: tuple[Any, ...]
) -> None:
    x, given = image(dtype, case[0]), pooled(case)
    ours, theirs = run_reference(cls, [x], **given)[0], run_litert(cls, [x], **given)[0]
    np.testing.assert_array_equal(ours, theirs, strict=True)
    if x.size:
        check_compiled(cls, [x], **given)


@pytest.mark.parametrize("activation", ["RELU", "RELU6", "RELU_N1_TO_1"])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("cls", CLASSES)
def test_fused_activations_of_pools_are_those_of_litert(
    cls: type[Pool2D], dtype: TensorType, activation: str
) -> None:
    point = {TensorType.INT8: -20, TensorType.UINT8: 110, TensorType.INT16: 0}[dtype]
    grid = Affine(0.05 if dtype != TensorType.INT16 else 0.0003, point)
    given = pooled(CASES[6], activation) | {"affine": [grid], "results": [grid]}
    x = image(dtype, CASES[6][0])
    ours, theirs = run_reference(cls, [x], **given)[0], run_litert(cls, [x], **given)[0]
    np.testing.assert_array_equal(ours, theirs)
    check_compiled(cls, [x], **given)


@pytest.mark.parametrize("lowest", [-128, -127, 0, 126])
def test_means_of_bytes_that_are_nearly_alike_are_those_of_the_reference(lowest: int) -> None:
    rng, given = np.random.default_rng(0), pooled(((), (11, 13), (11, 13), Padding.VALID))
    x = rng.integers(lowest, lowest + 2, (1, 11 * 9, 13 * 9, 32)).astype(np.int8)
    check_compiled(AveragePool2D, [x], **given)


@pytest.mark.parametrize("lowest", [-(2**15), -1, 2**15 - 2])
def test_means_of_many_shorts_that_are_nearly_alike_are_those_of_the_reference(lowest: int) -> None:
    rng, given = np.random.default_rng(0), pooled(((), (31, 43), (31, 43), Padding.VALID))
    x = rng.integers(lowest, lowest + 2, (1, 31 * 3, 43 * 3, 19)).astype(np.int16)
    check_compiled(AveragePool2D, [x], **given)


def test_pools_leave_what_is_wrong_to_the_reference() -> None:
    x = image(TensorType.INT8, CASES[0][0])
    assert declines(MaxPool2D, [x], **pooled(CASES[0], "RELU"))
    assert declines(MaxPool2D, [x[:0]], **pooled(CASES[0]))
