"""Compiled kernels of quantized bytes: exactly what the references give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from luciole.ir import Array, Op, TensorType
from luciole.ir.dtypes import NUMPY
from luciole.ir.ops import activations, comparisons, elementwise_binary, elementwise_unary
from luciole.ir.ops.gelu import Gelu
from luciole.ir.ops.leaky_relu import LeakyRelu
from luciole.ir.ops.prelu import PRelu
from luciole.ir.ops.quantize import Quantize
from luciole.schema.enums import ActivationFunctionType
from tests.native_support import check_compiled, declines
from tests.support import Affine

pytestmark = pytest.mark.filterwarnings("error")

INT8, UINT8 = TensorType.INT8, TensorType.UINT8
PAIRS = (elementwise_binary.Add, elementwise_binary.Sub, elementwise_binary.Mul)
GRIDS = ((0.05, 3, 0.02, -7, 0.1, 11), (0.7, -128, 0.7, 127, 1.3, 0), (1e-3, 5, 0.4, 0, 0.03, -20))
"""Scale and zero point of both operands and of the result, for INT8."""

SHAPES = (
    ((), ()),
    ((100,), (1,)),
    ((33, 1), (33, 17)),
    ((2, 1, 5), (4, 1)),
    ((7, 1, 3, 1, 2), (1, 2, 1, 3, 1)),
    ((0, 3), (1, 3)),
    ((3, 70, 65), (70, 65)),
)


def numbers(dtype: TensorType, *shape: int) -> Array:
    limits, rng = np.iinfo(NUMPY[dtype]), np.random.default_rng(sum(shape))
    return rng.integers(limits.min, limits.max, shape, limits.dtype, endpoint=True)


def every_pair(dtype: TensorType) -> list[Array]:
    every = np.arange(256, dtype=np.uint8).view(NUMPY[dtype])
    return [np.repeat(every.reshape(-1, 1), 256, 1), np.repeat(every.reshape(1, -1), 256, 0)]


def affine(dtype: TensorType, *grid: float) -> dict[str, Any]:
    middle = 128 if dtype == UINT8 else 0
    given = [Affine(s, int(p) + middle) for s, p in zip(grid[::2], grid[1::2], strict=True)]
    return {"affine": given[:-1], "results": given[-1:]}


@pytest.mark.parametrize("dtype", [INT8, UINT8])
@pytest.mark.parametrize("grid", [*GRIDS, (2.0, 0, 3.0, 1, 0.5, 2)])
@pytest.mark.parametrize("cls", PAIRS)
def test_every_pair_of_bytes_is_that_of_the_reference(
    cls: type[Op], dtype: TensorType, grid: Any
) -> None:
    check_compiled(cls, every_pair(dtype), **affine(dtype, *grid))


@pytest.mark.parametrize(("x", "y"), SHAPES)
@pytest.mark.parametrize("cls", [*PAIRS, elementwise_binary.Maximum, elementwise_binary.Minimum])
def test_bytes_of_any_shapes_are_those_of_the_reference(
    cls: type[Op], x: tuple[int, ...], y: tuple[int, ...]
) -> None:
    for dtype in (INT8, UINT8):
        check_compiled(cls, [numbers(dtype, *x), numbers(dtype, *y)], **affine(dtype, *GRIDS[0]))


@pytest.mark.parametrize("activation", ["RELU", "RELU6", "RELU_N1_TO_1"])
@pytest.mark.parametrize("cls", PAIRS)
def test_fused_activations_are_those_of_the_reference(cls: type[Op], activation: str) -> None:
    fused = ActivationFunctionType[activation]
    check_compiled(cls, every_pair(INT8), activation=fused, **affine(INT8, *GRIDS[0]))


@pytest.mark.parametrize("cls", PAIRS)
def test_pairs_leave_what_is_wrong_to_the_reference(cls: type[Op]) -> None:
    pair = [numbers(INT8, 5)] * 2
    assert declines(cls, pair)
    assert declines(cls, pair, **affine(INT8, 0.1, 300, 0.1, 0, 0.1, 0))


def test_sums_leave_factors_above_1_to_the_reference() -> None:
    pair, given = [numbers(INT8, 5)] * 2, affine(INT8, 1.0, 0, 1.0, 0, 1e-7, 0)
    assert declines(elementwise_binary.Add, pair, **given)


UNARY: tuple[tuple[type[Op], dict[str, Any], tuple[TensorType, ...]], ...] = (
    (activations.Tanh, {}, (INT8, UINT8)),
    (activations.Logistic, {}, (INT8, UINT8)),
    (activations.Relu, {}, (INT8, UINT8)),
    (activations.Relu6, {}, (INT8, UINT8)),
    (activations.ReluN1To1, {}, (INT8, UINT8)),
    (activations.Relu0To1, {}, (INT8, UINT8)),
    (activations.HardSwish, {}, (INT8, UINT8)),
    (activations.Elu, {}, (INT8,)),
    (LeakyRelu, {"alpha": 0.3}, (INT8, UINT8)),
    (Gelu, {}, (INT8, UINT8)),
    (Quantize, {}, (INT8, UINT8)),
    (elementwise_unary.Abs, {}, (INT8,)),
    (elementwise_unary.Neg, {}, (INT8,)),
    (elementwise_unary.Exp, {}, (INT8,)),
    (elementwise_unary.Log, {}, (INT8,)),
)


@pytest.mark.parametrize(
    ("cls", "attributes", "dtype"), [(c, a, t) for c, a, types in UNARY for t in types]
)
def test_functions_of_bytes_are_those_of_the_reference(
    cls: type[Op], attributes: dict[str, Any], dtype: TensorType
) -> None:
    given = affine(dtype, 0.05, 3, 0.02, -7)
    if cls is Quantize and dtype == UINT8:
        given["results"] = [Affine(0.02, -7, 0, INT8)]
    for shape in ((300,), (), (3, 0), (5, 7, 40_000 // 35)):
        check_compiled(cls, [numbers(dtype, *shape)], **attributes, **given)


LOOKED_UP = (
    PRelu,
    *comparisons.COMPARISONS,
    elementwise_binary.SquaredDifference,
)


@pytest.mark.parametrize("cls", LOOKED_UP)
def test_tables_of_pairs_give_what_the_reference_gives(cls: type[Op]) -> None:
    types = (INT8,) if cls is elementwise_binary.SquaredDifference else (INT8, UINT8)
    for dtype in types:
        given = affine(dtype, *GRIDS[0])
        if issubclass(cls, comparisons.Comparison):
            given.pop("results")
        for x, y in (((256, 256), (256,)), ((64, 3, 30), (3, 1)), ((5000,), ())):
            check_compiled(cls, [numbers(dtype, *x), numbers(dtype, *y)], **given)


def test_tables_of_pairs_are_not_made_for_few_elements() -> None:
    pair, given = [numbers(INT8, 5)] * 2, affine(INT8, *GRIDS[0])
    assert declines(PRelu, pair, **given)
    assert declines(PRelu, [numbers(INT8, 5000)] * 2)


@pytest.mark.parametrize("cls", [elementwise_unary.Rsqrt, elementwise_unary.Sqrt])
def test_roots_of_bytes_are_compiled_where_none_is_negative(cls: type[Op]) -> None:
    check_compiled(cls, [numbers(INT8, 300)], **affine(INT8, 0.05, -128, 0.02, -7))
    assert declines(cls, [numbers(INT8, 3)], **affine(INT8, 0.05, -127, 0.02, -7))
