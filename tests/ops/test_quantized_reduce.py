"""Reductions of quantized tensors against LiteRT."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from luciole.ir import Array, LucioleError, Op, TensorType
from luciole.ir.dtypes import NUMPY
from luciole.ir.ops import reduce
from tests.native_support import check_compiled, declines
from tests.support import Affine, run_litert, run_reference

pytestmark = pytest.mark.filterwarnings("error")

INT8, UINT8, INT16 = TensorType.INT8, TensorType.UINT8, TensorType.INT16
TYPES = (INT8, UINT8, INT16)
CASES = (((2, 3, 5), (1,)), ((4, 33), (-1,)), ((1, 7, 6, 20), (1, 2)), ((3, 4), (0, 1)), ((5,), ()))
"""Shape and axes."""


def numbers(dtype: TensorType, shape: tuple[int, ...], most: int = 2**15) -> Array:
    limits, rng = np.iinfo(NUMPY[dtype]), np.random.default_rng(sum(shape))
    low, high = max(limits.min, -most), min(limits.max, most)
    return rng.integers(low, high, shape, limits.dtype, endpoint=True)


def same(cls: type[Op], x: Array, axes: tuple[int, ...], **given: Any) -> None:
    for keep in (False, True):
        arrays = [x, np.array(axes, np.int32)]
        ours, theirs = (
            run(cls, arrays, (1,), keep_dims=keep, **given)[0]
            for run in (run_reference, run_litert)
        )
        np.testing.assert_array_equal(ours, theirs, strict=True)


def grids(dtype: TensorType, scale: float, to: float) -> dict[str, Any]:
    points = {INT8: (3, -11), UINT8: (130, 7), INT16: (0, 0)}[dtype]
    return {"affine": [Affine(scale, points[0])], "results": [Affine(to, points[1])]}


@pytest.mark.parametrize("cls", [reduce.Mean, reduce.Sum])
@pytest.mark.parametrize("point", [2**63 - 1, -(2**63), 2**33 + 5])
def test_zero_points_of_64_bits_wrap_as_32_bits_do(cls: type[Op], point: int) -> None:
    def result(zero: int) -> Array:
        arrays = [numbers(UINT8, (4, 33)), np.array([1], np.int32)]
        found = run_reference(cls, arrays, (1,), affine=[Affine(0.5, zero)], results=[Affine(2, 9)])
        return found[0]

    wrapped = int(np.array([point]).astype(np.int32)[0])
    np.testing.assert_array_equal(result(point), result(wrapped))


SCALES = ((0.05, 0.02), (0.3, 1.1), (1e-3, 1e-3))


@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    ("cls", "dtype"), [(reduce.Sum, UINT8), *((reduce.Mean, dtype) for dtype in TYPES)]
)
def test_quantized_means_and_sums_are_those_of_litert(
    cls: type[Op], dtype: TensorType, case: tuple[Any, ...], scales: tuple[float, float]
) -> None:
    shape, axes = case
    same(cls, numbers(dtype, shape), axes, **grids(dtype, *scales))
    check(cls, dtype, shape, axes, scales)


def check(
    cls: type[Op],
    dtype: TensorType,
    shape: tuple[int, ...],
    axes: tuple[int, ...],
    scales: tuple[float, float],
) -> None:
    """The compiled kernel gives what the reference gives."""
    arrays, given = [numbers(dtype, shape), np.array(axes, np.int32)], grids(dtype, *scales)
    check_compiled(cls, arrays, (1,), **given)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("cls", [reduce.Mean, reduce.Sum])
def test_sums_in_any_shape_are_those_of_the_reference(cls: type[Op], dtype: TensorType) -> None:
    for axes in ((0, 2), (1, 3), (3,), (0, 1, 2, 3), (0,)):
        check(cls, dtype, (3, 5, 4, 70), axes, (0.1, 0.7))


def test_sums_leave_what_might_wrap_around_to_the_reference() -> None:
    given = grids(INT8, 0.5, 1e-8)
    assert declines(reduce.Sum, [numbers(INT8, (2, 3)), np.array([1], np.int32)], (1,), **given)
    many: list[Array] = [np.zeros((1, 2**14 + 1), np.int16), np.array([1], np.int32)]
    assert declines(reduce.Mean, many, (1,), **grids(INT16, 0.5, 0.5))


@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", [INT8, INT16])
def test_quantized_sums_of_signed_integers_are_right(
    dtype: TensorType, case: tuple[Any, ...], scales: tuple[float, float]
) -> None:
    # LiteRT 2.3 takes their bytes for those of UINT8
    shape, axes = case
    x, given = numbers(dtype, shape), grids(dtype, *scales)
    found = run_reference(reduce.Sum, [x, np.array(axes, np.int32)], (1,), **given)[0]
    (before,), (after,) = given["affine"], given["results"]
    real = ((x.astype(float) - before.zero_point) * before.scale).sum(axis=axes)
    limits = np.iinfo(x.dtype)
    exact = np.clip(real / after.scale + after.zero_point, limits.min, limits.max)
    assert np.max(np.abs(found - exact)) < 0.76  # rounded twice


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("shape", "axes"), CASES)
@pytest.mark.parametrize("cls", [reduce.ReduceMax, reduce.ReduceMin])
def test_extremes_of_integers_are_those_of_litert(
    cls: type[Op], shape: tuple[int, ...], axes: tuple[int, ...], dtype: TensorType
) -> None:
    same(cls, numbers(dtype, shape), axes)


@pytest.mark.parametrize("dtype", [INT8, INT16])
@pytest.mark.parametrize(("shape", "axes"), CASES)
def test_quantized_products_are_those_of_litert(
    shape: tuple[int, ...], axes: tuple[int, ...], dtype: TensorType
) -> None:
    given = grids(dtype, 0.02, 0.01)
    same(reduce.ReduceProd, numbers(dtype, shape, 100), axes, **given)


@pytest.mark.parametrize("dtype", TYPES)
def test_products_without_scales_wrap(dtype: TensorType) -> None:
    same(reduce.ReduceProd, numbers(dtype, (4, 7)), (1,))


@pytest.mark.parametrize("cls", [reduce.Mean, reduce.ReduceMax])
def test_nothing_to_reduce_is_what_litert_makes_of_it(cls: type[Op]) -> None:
    grid = Affine(0.1, 5)
    same(cls, np.zeros((2, 0), np.int8), (1,), affine=[grid], results=[grid])


def test_quantized_reduce_max_refuses_another_grid() -> None:
    arrays = [numbers(INT8, (2, 3)), np.array([1], np.int32)]
    message = r"the result has scale 0\.2.* and zero point -11; the input's scale 0\.1.* are needed"
    with pytest.raises(LucioleError, match=message):
        run_reference(reduce.ReduceMax, arrays, (1,), **grids(INT8, 0.1, 0.2))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("cls", [reduce.Mean, reduce.Sum])
def test_quantized_means_and_sums_refuse_tensors_without_scales(
    cls: type[Op], dtype: TensorType
) -> None:
    # LiteRT divides a scale of 0 by another: what it gives has nothing to do with the numbers
    arrays = [numbers(dtype, (2, 3)), np.array([1], np.int32)]
    with pytest.raises(LucioleError, match="the input has no scale"):
        run_reference(cls, arrays, (1,))
    if dtype != INT16:
        assert declines(cls, arrays, (1,))
