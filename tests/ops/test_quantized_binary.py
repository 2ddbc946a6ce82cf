"""Binary element-wise operators on quantized tensors: every pair of integers against LiteRT."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from luciole.exporters import to_bytes
from luciole.ir import Array, LucioleError, Op, TensorType
from luciole.ir.dtypes import NUMPY
from luciole.ir.ops import comparisons, elementwise_binary
from luciole.ir.ops.prelu import PRelu
from luciole.kernels.core import evaluation
from luciole.schema.enums import ActivationFunctionType
from tests.support import Affine, litert, one_op, run_litert, run_reference

pytestmark = pytest.mark.filterwarnings("error")

INT8, UINT8, INT16 = TensorType.INT8, TensorType.UINT8, TensorType.INT16
ARITHMETIC = (
    elementwise_binary.Add,
    elementwise_binary.Sub,
    elementwise_binary.Mul,
    elementwise_binary.Div,
)
GRIDS = ((0.05, 3, 0.02, -7, 0.1, 11), (0.7, -128, 0.7, 127, 1.3, 0), (1e-3, 5, 0.4, 0, 0.03, -20))
"""Scale and zero point of both operands and of the result, for INT8."""


def every_pair(dtype: TensorType) -> list[Array]:
    """All numbers of 8 bits with all others; of 16 bits, a sample that has the extremes."""
    limits = np.iinfo(NUMPY[dtype])
    numbers = np.arange(limits.min, limits.max + 1, 1 if limits.bits == 8 else 331)
    numbers[-1] = limits.max
    x = numbers.astype(NUMPY[dtype])
    return [x.reshape(-1, 1), x]


def affine(dtype: TensorType, *grid: float) -> tuple[list[Affine], list[Affine]]:
    """A row of ``GRIDS`` for an element type."""
    middle = {INT8: 0, UINT8: 128, INT16: None}[dtype]
    points = [0 if middle is None else int(p) + middle for p in grid[1::2]]
    x, y, z = (Affine(s, p) for s, p in zip(grid[::2], points, strict=True))
    return [x, y], [z]


def same(cls: type[Op], arrays: list[Array], **given: Any) -> None:
    """The reference gives what LiteRT gives."""
    ours, theirs = run_reference(cls, arrays, **given)[0], run_litert(cls, arrays, **given)[0]
    np.testing.assert_array_equal(ours, theirs, strict=True)


@pytest.mark.parametrize("dtype", [INT8, UINT8, INT16])
@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("cls", ARITHMETIC[:3])
def test_arithmetic_is_that_of_litert(cls: type[Op], dtype: TensorType, grid: Any) -> None:
    operands, results = affine(dtype, *grid)
    same(cls, every_pair(dtype), affine=operands, results=results)


@pytest.mark.parametrize("dtype", [INT8, UINT8, INT16])
@pytest.mark.parametrize("grid", GRIDS)
def test_div_is_that_of_litert(dtype: TensorType, grid: Any) -> None:
    x, y = every_pair(dtype)
    operands, results = affine(dtype, *grid)
    y = y[y != operands[1].zero_point]
    given: Any = {"affine": operands, "results": results}
    ours, theirs = (
        run(elementwise_binary.Div, [x, y], **given)[0] for run in (run_reference, run_litert)
    )
    above, below = (
        (a.astype(float) - g.zero_point) * g.scale for a, g in zip((x, y), operands, strict=True)
    )
    # where quotients are smaller, LiteRT shifts by more bits than C defines
    large = np.abs(above / below) > results[0].scale
    np.testing.assert_array_equal(ours[large], theirs[large])


@pytest.mark.parametrize("activation", ["RELU", "RELU6", "RELU_N1_TO_1"])
@pytest.mark.parametrize("cls", ARITHMETIC)
def test_fused_activations_are_those_of_litert(cls: type[Op], activation: str) -> None:
    x = every_pair(INT8)[1]
    operands, results = affine(INT8, 0.05, -128, 0.03, 4, 0.02, 9)
    pair = [x, np.where(x == 4, 5, x).astype(np.int8)]
    fused = ActivationFunctionType[activation]
    same(cls, pair, affine=operands, results=results, activation=fused)


@pytest.mark.parametrize("cls", [elementwise_binary.Add, elementwise_binary.Sub])
@pytest.mark.parametrize("shifts", [(0, 0), (0, -3), (-5, 0)])
def test_powers_of_two_of_16_bits_are_shifted(cls: type[Op], shifts: tuple[int, int]) -> None:
    operands, x = [Affine(2.0 ** (s - 9)) for s in shifts], every_pair(INT16)[1]
    pair = [x, np.roll(x, 7)]
    same(cls, pair, affine=operands, results=[Affine(2.0**-9)])
    same(cls, pair, affine=operands, results=[Affine(2.0**-9)], pot_scale_int16=False)


@pytest.mark.parametrize(
    "cls", [elementwise_binary.Add, elementwise_binary.Mul, *comparisons.COMPARISONS[:5]]
)
def test_16_bits_without_scales_are_plain_numbers(cls: type[Op]) -> None:
    same(cls, every_pair(INT16))


def test_quotients_below_a_step_are_right() -> None:
    x, y = (a.astype(np.float64) for a in every_pair(INT8))
    operands, results = affine(INT8, 0.05, 0, 0.02, 0, 0.1, 11)
    divisors = y[y != 0]
    given = [x.astype(np.int8), divisors.astype(np.int8)]
    found = run_reference(elementwise_binary.Div, given, affine=operands, results=results)[0]
    exact = np.clip(x / divisors * (0.05 / 0.02 / 0.1) + 11, -128, 127)
    assert np.max(np.abs(found - exact)) < 0.51


@pytest.mark.parametrize(("dtype", "point"), [(INT8, 0), (INT8, -5), (UINT8, 128)])
def test_bytes_of_products_of_16_bits_are_those_of_litert(dtype: TensorType, point: int) -> None:
    x = every_pair(INT16)[1]
    pair, fractions = [x, np.roll(x, 31)], [Affine(2.0**-15)] * 2
    pair[1][0] = -(2**15)
    result = [Affine(1 / 128, point, 0, dtype)]
    model = one_op(elementwise_binary.Mul, pair, affine=fractions, results=result)
    op = model.graph.ops[0]
    assert op.result_dtypes() == (dtype,)
    ours = evaluation.computed(op, list(pair))[0]
    theirs = litert(to_bytes(model, "tflite"), pair)[0]
    np.testing.assert_array_equal(ours, theirs, strict=True)


@pytest.mark.parametrize("grid", GRIDS)
def test_squared_difference_is_that_of_litert(grid: Any) -> None:
    operands, results = affine(INT8, *grid)
    same(elementwise_binary.SquaredDifference, every_pair(INT8), affine=operands, results=results)


@pytest.mark.parametrize("dtype", [INT8, UINT8, INT16])
@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("cls", comparisons.COMPARISONS)
def test_comparisons_are_those_of_litert(cls: type[Op], dtype: TensorType, grid: Any) -> None:
    same(cls, every_pair(dtype), affine=affine(dtype, *grid)[0])


@pytest.mark.parametrize("dtype", [INT8, UINT8, INT16])
@pytest.mark.parametrize("grid", GRIDS)
def test_prelu_is_that_of_litert(dtype: TensorType, grid: Any) -> None:
    column, row = every_pair(dtype)[0], every_pair(INT8 if dtype == INT16 else dtype)[1]
    operands, results = affine(dtype, *grid)
    given = [np.repeat(column, len(row), 1), row]
    same(PRelu, given, affine=operands, results=results)


@pytest.mark.parametrize("cls", [elementwise_binary.Maximum, elementwise_binary.Minimum])
@pytest.mark.parametrize("dtype", [INT8, UINT8, INT16])
def test_larger_and_smaller_integers_are_those_of_litert(cls: type[Op], dtype: TensorType) -> None:
    same(cls, every_pair(dtype))


def test_quantized_div_refuses_what_stands_for_0() -> None:
    operands, results = affine(INT8, *GRIDS[0])
    with pytest.raises(LucioleError, match="1 of 256 divisors are 0"):
        run_reference(elementwise_binary.Div, every_pair(INT8), affine=operands, results=results)


def test_quantized_add_refuses_tensors_without_scales() -> None:
    operands, results = affine(INT8, *GRIDS[0])
    with pytest.raises(LucioleError, match="y has no scale; one, or one per channel, is needed"):
        run_reference(
            elementwise_binary.Add, every_pair(INT8), affine=operands[:1], results=results
        )
    with pytest.raises(LucioleError, match="the result has no scale"):
        run_reference(elementwise_binary.Add, every_pair(INT8), affine=operands)


def test_quantized_mul_refuses_several_scales() -> None:
    _, results = affine(INT8, *GRIDS[0])
    several = [Affine([0.1] * 256, 0, 0), Affine(0.2)]
    with pytest.raises(LucioleError, match="x has 256 scales; one is needed"):
        run_reference(elementwise_binary.Mul, every_pair(INT8), affine=several, results=results)
