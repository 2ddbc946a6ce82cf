"""Compiled kernels of quantized bytes: exactly what the references give."""

from __future__ import annotations

from itertools import product
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

INT8, UINT8, INT16 = TensorType.INT8, TensorType.UINT8, TensorType.INT16
PAIRS = (elementwise_binary.Add, elementwise_binary.Sub, elementwise_binary.Mul)
SHORT_PAIRS = (*PAIRS, elementwise_binary.Maximum, elementwise_binary.Minimum)
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
ALIKE = SHAPES[-1]
"""Of which both operands go on within a line. Kernels are compiled for that: functions and types
that differ elsewhere alone need no others.
"""


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


@pytest.mark.parametrize("grid", [*GRIDS, (2.0, 0, 3.0, 1, 0.5, 2)])
@pytest.mark.parametrize("cls", PAIRS)
def test_every_pair_of_bytes_is_that_of_the_reference(cls: type[Op], grid: Any) -> None:
    check_compiled(cls, every_pair(INT8), **affine(INT8, *grid))
    (x, *_), y = every_pair(INT8)[1], every_pair(INT8)[0][:, :1]  # stretched, other lanes at once
    check_compiled(cls, [x, y], **affine(INT8, *grid))


@pytest.mark.parametrize("cls", PAIRS)
def test_every_pair_of_unsigned_bytes_is_that_of_the_reference(cls: type[Op]) -> None:
    """Which are read and written otherwise; what lies between is the same."""
    check_compiled(cls, every_pair(UINT8), **affine(UINT8, *GRIDS[0]))


def test_sums_with_halves_and_of_any_scales_are_those_of_the_reference() -> None:
    """Equal scales, of which half the sums lie between two steps, and those of a residual block."""
    rng = np.random.default_rng(6)
    any_ones = [(x, 9, y, -40, 0.9 * (x + y), 5) for x, y in rng.uniform(0.01, 0.1, (3, 2))]
    for grid in ((0.1, 3, 0.1, -7, 0.2, 11), *any_ones):
        for cls in PAIRS[:2]:
            check_compiled(cls, every_pair(INT8), **affine(INT8, *grid))


@pytest.mark.parametrize(
    ("cls", "dtype", "shapes"),
    [
        *product((*PAIRS, elementwise_binary.Maximum), [INT8], SHAPES),
        *product(SHORT_PAIRS, [UINT8], [ALIKE]),
        (elementwise_binary.Minimum, INT8, ALIKE),
    ],
)
def test_bytes_of_any_shapes_are_those_of_the_reference(
    cls: type[Op], dtype: TensorType, shapes: Any
) -> None:
    pair = [numbers(dtype, *shape) for shape in shapes]
    check_compiled(cls, pair, **affine(dtype, *GRIDS[0]))


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


STRETCHED = (PRelu, comparisons.Less, comparisons.Greater)
"""Whose operands go on alone within a line; the others differ elsewhere."""

BY_FACTORS = (
    PRelu,
    *comparisons.COMPARISONS,
    elementwise_binary.SquaredDifference,
)


@pytest.mark.parametrize("cls", BY_FACTORS)
def test_functions_of_pairs_give_what_the_reference_gives(cls: type[Op]) -> None:
    types = (INT8, UINT8) if cls in (PRelu, comparisons.Less) else (INT8,)
    for dtype in types:
        given = affine(dtype, *GRIDS[0])
        if issubclass(cls, comparisons.Comparison):
            given.pop("results")
        check_compiled(cls, every_pair(dtype), **given)
        is_stretched = cls in STRETCHED and dtype == INT8
        stretched = (((64, 3, 30), (3, 1)), ((5000,), ())) if is_stretched else ()
        for x, y in (*stretched, ((64, 3, 30), (3, 30)), ((5,), (5,)), ((0, 2), (2,))):
            check_compiled(cls, [numbers(dtype, *x), numbers(dtype, *y)], **given)


@pytest.mark.parametrize("cls", BY_FACTORS)
def test_functions_of_pairs_leave_what_is_wrong_to_the_reference(cls: type[Op]) -> None:
    assert declines(cls, [numbers(INT8, 5000)] * 2)


@pytest.mark.parametrize("cls", [elementwise_unary.Rsqrt, elementwise_unary.Sqrt])
def test_roots_of_bytes_are_compiled_where_none_is_negative(cls: type[Op]) -> None:
    check_compiled(cls, [numbers(INT8, 300)], **affine(INT8, 0.05, -128, 0.02, -7))
    assert declines(cls, [numbers(INT8, 3)], **affine(INT8, 0.05, -127, 0.02, -7))


# ---------------------------------------------------------------------------------------- 16 bits
EVERY = np.arange(-(2**15), 2**15).astype(np.int16)
SHORT_GRIDS = (
    (2e-4, 0, 3e-4, 0, 5e-4, 0),
    (1e-3, 0, 1e-6, 0, 2e-5, 0),
    (2e-4, 7, 1e-4, -9, 3e-3, 5),
)


@pytest.mark.parametrize("grid", SHORT_GRIDS)
@pytest.mark.parametrize("cls", SHORT_PAIRS)
def test_pairs_of_16_bits_are_those_of_the_reference(cls: type[Op], grid: Any) -> None:
    extremes = np.array([-(2**15), 2**15 - 1, 0, -1, 1], np.int16)
    mixed = np.random.default_rng(3).permutation(EVERY)
    check_compiled(cls, [EVERY, mixed], **affine(INT16, *grid))
    check_compiled(cls, [extremes.repeat(5), np.tile(extremes, 5)], **affine(INT16, *grid))
    is_stretched = cls is elementwise_binary.Mul or (cls is elementwise_binary.Add and not grid[1])
    for x, y in SHAPES if is_stretched else [ALIKE]:
        check_compiled(cls, [numbers(INT16, *x), numbers(INT16, *y)], **affine(INT16, *grid))


@pytest.mark.parametrize("cls", [elementwise_binary.Add, elementwise_binary.Sub])
@pytest.mark.parametrize("exponents", [(-12, -14, -12), (-15, -11, -11), (-9, -9, -9)])
def test_sums_of_powers_of_two_are_those_of_the_reference(cls: type[Op], exponents: Any) -> None:
    scales = [2.0**n for n in exponents]
    pair = [EVERY, np.random.default_rng(4).permutation(EVERY)]
    given = affine(INT16, scales[0], 0, scales[1], 0, scales[2], 0)
    for fused in ("NONE", "RELU"):
        check_compiled(cls, pair, activation=ActivationFunctionType[fused], **given)


@pytest.mark.parametrize("dtype", [INT8, UINT8])
def test_products_of_16_bits_may_be_bytes(dtype: TensorType) -> None:
    pair = [EVERY, EVERY[::-1].copy()]
    given = affine(INT16, 1e-4, 0, 1e-4, 0)
    result = Affine(0.01, 3, 0, dtype)
    check_compiled(elementwise_binary.Mul, pair, affine=given["affine"], results=[result])


@pytest.mark.parametrize("cls", [comparisons.NotEqual, comparisons.Less])
def test_comparisons_of_16_bits_are_those_of_the_reference(cls: type[Op]) -> None:
    pair = [EVERY, np.roll(EVERY, 1)]
    check_compiled(cls, pair)
    check_compiled(cls, [EVERY, EVERY[:1].repeat(2**16)], affine=affine(INT16, *GRIDS[2])["affine"])


def test_alpha_of_8_bits_beside_16_bits_is_that_of_the_reference() -> None:
    alpha, given = numbers(INT8, 256), affine(INT16, 2e-4, 0, 3e-4, 0)
    grids = {"affine": [given["affine"][0], Affine(0.01, 4)], "results": given["results"]}
    check_compiled(PRelu, [EVERY.reshape(256, 256), alpha], **grids)


SHORT_UNARY: tuple[tuple[type[Op], dict[str, Any], tuple[float, ...]], ...] = (
    (LeakyRelu, {"alpha": 0.3}, (2e-4, 0, 3e-4, 0)),
    (LeakyRelu, {"alpha": -1.7}, (2e-4, 5, 1e-4, -3)),
    (activations.Relu, {}, (2e-4, 0, 3e-4, 0)),
    (activations.Relu6, {}, (2e-3, 9, 3e-4, -4)),
    (activations.Tanh, {}, (2e-4, 0, 2.0**-15, 0)),
    (activations.Logistic, {}, (3e-4, 0, 2.0**-15, 0)),
    (Gelu, {}, (3e-4, 0, 2e-4, 0)),
    (elementwise_unary.Abs, {}, (2e-4, 0, 2e-4, 0)),
    (elementwise_unary.Abs, {}, (2e-4, -7, 3e-4, 9)),
    (elementwise_unary.Exp, {}, (2e-4, 0, 3e-2, 0)),
    (elementwise_unary.Log, {}, (2e-4, 0, 3e-4, 0)),
    (elementwise_unary.Neg, {}, (2e-4, 0, 2e-4, 0)),
    (elementwise_unary.Sqrt, {}, (2e-4, -(2**15), 3e-4, 0)),
    (elementwise_unary.Rsqrt, {}, (2e-4, -(2**15), 3e-3, 0)),
)


@pytest.mark.parametrize(("cls", "attributes", "grid"), SHORT_UNARY)
def test_functions_of_16_bits_are_those_of_the_reference(
    cls: type[Op], attributes: dict[str, Any], grid: Any
) -> None:
    for x in (EVERY, EVERY[:0], EVERY[30000:30007].reshape(7, 1)):
        check_compiled(cls, [x], **attributes, **affine(INT16, *grid))


def test_sizes_of_plain_16_bits_are_those_of_the_reference() -> None:
    check_compiled(elementwise_unary.Abs, [EVERY])


INT32 = TensorType.INT32
CHANGES = (
    *product((INT8, UINT8), repeat=2),
    *((INT8, INT16), (INT16, UINT8), (INT16, INT16), (INT16, INT32), (UINT8, INT32)),
    *((INT32, INT8), (INT32, INT32)),
)
"""Every type as a source and as a target, which are read and written by themselves."""


@pytest.mark.parametrize(("given", "to"), CHANGES)
def test_changes_of_scale_are_those_of_the_reference(given: TensorType, to: TensorType) -> None:
    for scale, new_scale in ((2e-4, 3e-4), (0.5, 0.01), (1e-3, 1e-3)):
        results = [Affine(new_scale, 9, 0, to)]
        x = numbers(given, 70_000)
        check_compiled(Quantize, [x], affine=[Affine(scale, 3)], results=results)
