"""Fixed-point arithmetic, against LiteRT's reference kernels and exact fractions."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import floor
from typing import Any

import numpy as np
import pytest

from luciole.ir import Array, LucioleError, TensorType, UnsupportedError, Value
from luciole.ir.analysis.fixed_point import (
    activation_range,
    high_multiply,
    multiply,
    multiply_wide,
    quantize_multiplier,
    requantized,
    rounding_divide,
)
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.quantization import per_tensor
from luciole.kernels.fixed_point.functions import inverse_root
from luciole.schema.enums import ActivationFunctionType
from luciole.schema.tables import QuantizationParameters
from tests.support import Affine, run_litert

NONE = ActivationFunctionType.NONE
RANDOM = np.random.default_rng(23)
INT32 = np.iinfo(np.int32)
TYPES: dict[TensorType, Any] = {
    TensorType.INT8: np.int8,
    TensorType.UINT8: np.uint8,
    TensorType.INT16: np.int16,
}
BIAS = {TensorType.INT8: np.int32, TensorType.UINT8: np.int32, TensorType.INT16: np.int64}


def litert_scales(
    sums: Array,
    scale: float,
    dtype: TensorType,
    zero_point: int = 0,
    activation: ActivationFunctionType = NONE,
) -> Array:
    """Numbers times 1 / ``scale`` in LiteRT: biases of a convolution whose weights are 0."""
    bias = sums.astype(BIAS[dtype])
    x, weights = np.zeros((1, 1, 1, 1), TYPES[dtype]), np.zeros((len(bias), 1, 1, 1))
    given = weights.astype(np.uint8 if dtype == TensorType.UINT8 else np.int8)
    one = Affine(1.0)
    options: dict[str, Any] = {"affine": (one, one, one), "stride_w": 1, "stride_h": 1}
    options["results"] = [Affine(scale, zero_point)]
    results = run_litert(Conv2D, [x, given, bias], (1, 2), activation=activation, **options)
    return results[0].reshape(-1)


def around(factor: float, dtype: TensorType) -> Array:
    """Numbers whose products lie on both sides of every result, many of them near its edges."""
    limits = np.iinfo(TYPES[dtype])
    steps = RANDOM.integers(2 * limits.min - 20, 2 * limits.max + 20, 4000) / 2
    found = np.round(steps / factor) + RANDOM.integers(-2, 3, 4000)
    return np.clip(found, INT32.min, INT32.max).astype(np.int64)


@pytest.mark.parametrize("scale", [1, 3, 2**-0.5, 4, 81.3, 1e4 / 3, 1e6, 7e8, 0.31, 0.01])
@pytest.mark.parametrize("dtype", [TensorType.INT8, TensorType.UINT8])
def test_products_are_those_of_litert(scale: float, dtype: TensorType) -> None:
    factor = 1 / float(np.float32(scale))
    sums = around(factor, dtype)
    ours = requantized(
        multiply(sums, *quantize_multiplier(factor)),
        0,
        activation_range(NONE, dtype, np.float32(scale), 0),
        dtype,
    )
    np.testing.assert_array_equal(ours, litert_scales(sums, scale, dtype), strict=True)


@pytest.mark.parametrize("scale", [1, 3, 2**-0.5, 81.3, 1e5 / 3, 0.31])
def test_wide_products_are_those_of_litert(scale: float) -> None:
    factor, dtype = 1 / float(np.float32(scale)), TensorType.INT16
    sums = around(factor, dtype)
    ours = requantized(
        multiply_wide(sums, *quantize_multiplier(factor)), 0, (-(2**15), 2**15 - 1), dtype
    )
    np.testing.assert_array_equal(ours, litert_scales(sums, scale, dtype), strict=True)


def test_multipliers_are_the_nearest_fractions() -> None:
    factors = np.concatenate(
        [
            RANDOM.uniform(0.5, 1, 50) * 2.0 ** RANDOM.integers(-31, 30, 50),
            [1.0, 0.5, 1 - 2.0**-32, 1 - 2.0**-40, 2.0**-32, 3e-11, 0.0, -0.3, -1.0],
        ]
    )
    for factor, multiplier, shift in zip(factors, *quantize_multiplier(factors), strict=True):
        assert multiplier == 0 or 2**30 <= abs(multiplier) < 2**31
        exact, made = (
            Fraction(float(factor)),
            Fraction(int(multiplier)) * Fraction(2) ** (int(shift) - 31),
        )
        assert abs(exact - made) <= max(
            abs(exact) * Fraction(1, 2**31), Fraction(0 if multiplier else 1, 2**32)
        )
    assert [int(n) for n in quantize_multiplier(1e-12)] == [0, 0]


def test_halves_are_rounded_away_from_zero_or_up() -> None:
    numbers = np.array(
        [*range(-9, 10), INT32.min, INT32.max, *RANDOM.integers(-(2**31), 2**31, 99)]
    )
    for exponent in (0, 1, 2, 5, 31):
        exact = [Fraction(int(n), 2**exponent) for n in numbers]
        away = [floor(abs(x) + Fraction(1, 2)) * (1 if x > 0 else -1) for x in exact]
        np.testing.assert_array_equal(rounding_divide(numbers, exponent), away)
    for multiplier in (2**30, 1234567890, -(2**30), 1, INT32.max, INT32.min):
        up = [floor(Fraction(int(n) * multiplier, 2**31) + Fraction(1, 2)) for n in numbers]
        wanted = np.minimum(up, INT32.max)
        np.testing.assert_array_equal(high_multiply(numbers, multiplier), wanted)


def test_inverse_roots_of_all_sizes() -> None:
    edges = 2 ** np.arange(1, 32, dtype=np.int64)
    numbers = np.concatenate([edges - 1, edges[:-1], RANDOM.integers(1, 2**31, 999)])
    multiplier, shift = inverse_root(numbers)
    np.testing.assert_allclose(multiplier * 2.0 ** (shift - 31), 1 / np.sqrt(numbers), rtol=2e-6)


@pytest.mark.parametrize("activation", [ActivationFunctionType(n) for n in range(4)])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("scale", [0.0371, 0.5, 0.004, 7.0])
def test_activations_cut_off_where_litert_does(
    activation: ActivationFunctionType, dtype: TensorType, scale: float
) -> None:
    zero_point = {TensorType.INT8: -11, TensorType.UINT8: 119, TensorType.INT16: 0}[dtype]
    sums = np.array([-(2**20), 2**20])
    limits = activation_range(activation, dtype, np.float32(scale), zero_point)
    theirs = litert_scales(sums, scale, dtype, zero_point, activation)
    assert limits == tuple(int(n) for n in theirs)


def value(scale: Sequence[float] | None, zero_point: Sequence[int] | None = None) -> Value:
    made = Value("v", TensorType.INT8, (2, 3))
    made.quantization = QuantizationParameters(
        scale=None if scale is None else np.array(scale, np.float32),
        zero_point=None if zero_point is None else np.array(zero_point, np.int64),
        quantized_dimension=1,
    )
    return made


def test_a_tensor_without_zero_points_has_zero() -> None:
    assert per_tensor(value([0.5]), "x") == (np.float32(0.5), 0)
    assert per_tensor(value([0.5], [7]), "x") == (np.float32(0.5), 7)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (value(None), "x has no scale"),
        (value([]), "x has no scale"),
        (value([0.0]), "x has scales 0.0 to 0.0; they must be positive and finite"),
        (value([np.nan]), "positive and finite"),
        (value([1, 2, 3]), "x has 3 scales; one is needed"),
        (value([1], [1, 2]), "x has 2 zero points, 1 scales"),
    ],
)
def test_per_tensor_refuses_what_is_not_one_scale(given: Value, message: str) -> None:
    with pytest.raises(LucioleError, match=message):
        per_tensor(given, "x")


@pytest.mark.parametrize("factor", [2.0**30, np.inf, np.nan])
def test_quantize_multiplier_refuses_factors_that_are_too_large(factor: float) -> None:
    with pytest.raises(LucioleError, match=r"scales make a factor of .*; up to 2\^30 is needed"):
        quantize_multiplier([0.5, factor])


def test_multiply_wide_refuses_factors_that_are_too_large() -> None:
    with pytest.raises(
        LucioleError, match="scales make a factor of 2\\^15; below 2\\^14 is needed"
    ):
        multiply_wide(1, *quantize_multiplier(16384))


def test_activation_range_refuses_other_activations_and_tiny_scales() -> None:
    with pytest.raises(UnsupportedError, match="TANH is not supported for integers"):
        activation_range(ActivationFunctionType.TANH, TensorType.INT8, np.float32(1), 0)
    with pytest.raises(LucioleError, match=r"scale .* is too small for its activation"):
        activation_range(ActivationFunctionType.RELU6, TensorType.INT8, np.float32(1e-20), 0)
