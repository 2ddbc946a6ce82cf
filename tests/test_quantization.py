"""Affine quantization: codes and the real numbers that they stand for, against plain arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest

from luciole.ir import LucioleError, TensorType, Value
from luciole.ir.dtypes import byte_count, integer_range
from luciole.ir.quantization import (
    Affine,
    affine_of,
    is_affine,
    rounded,
    stored_parameters,
    vectors,
    zero_code,
)
from luciole.schema.tables import QuantizationParameters

INTEGERS = [
    *(TensorType.INT2, TensorType.INT4, TensorType.UINT4, TensorType.INT8, TensorType.UINT8),
    *(TensorType.INT16, TensorType.UINT16, TensorType.INT32),
]


def nearest(x: float, scale: float, point: int, dtype: TensorType) -> int:
    """The code of one number, halves away from zero."""
    low, high = integer_range(dtype) or (0, 0)
    quotient = x / scale
    steps = math.floor(abs(quotient) + 0.5) * (1 if quotient >= 0 else -1)
    return min(max(steps + point, low), high)


def tensor(dtype: TensorType, scale: object, points: object = None, axis: int = 0) -> Value:
    value = Value("x", dtype, (2, 3))
    value.quantization = QuantizationParameters(
        scale=None if scale is None else np.array(scale, np.float32),
        zero_point=None if points is None else np.array(points, np.int64),
        quantized_dimension=axis,
    )
    return value


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("point", [0, 1])
def test_codes_are_the_nearest_ones_and_saturate(dtype: TensorType, point: int) -> None:
    affine = Affine.single(0.25, point, dtype)
    x = np.array([0, 0.1, 0.125, -0.125, 0.375, -0.375, 1, -1, 1e9, -1e9])
    wanted = [nearest(float(v), 0.25, point, dtype) for v in x]
    found = affine.encode(x)
    assert found.tolist() == wanted
    assert found.itemsize == (byte_count(dtype, 4) or 0) // 4 or found.itemsize == 1


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", [*INTEGERS, TensorType.INT64])
def test_codes_of_what_has_none_saturate(dtype: TensorType) -> None:
    """A cast beyond a type's range is undefined: processors differ in what it gives."""
    low, high = integer_range(dtype) or (0, 0)
    x = np.array([np.nan, np.inf, -np.inf, 1e300, -1e300])
    found = Affine.single(1e-42, 0, dtype).encode(x)
    assert found.tolist() == [low, high, low, high, low]


@pytest.mark.parametrize("dtype", INTEGERS[:-1])
def test_codes_survive_decoding_and_encoding(dtype: TensorType) -> None:
    low, high = integer_range(dtype) or (0, 0)
    affine = Affine.single(0.3, 1, dtype)
    codes = np.arange(low, high + 1)
    np.testing.assert_array_equal(affine.encode(affine.decode(codes)), codes)
    assert affine.limits == (low, high)
    assert affine.bits == (high - low).bit_length()


def test_every_channel_has_its_own_scale_and_zero_point() -> None:
    affine = Affine.channels(np.array([1.0, 0.5, 2.0]), np.array([0, 1, -1]), 1, TensorType.INT8)
    real = affine.decode(np.array([[1, 1, 1], [4, 4, 4]], np.int8))
    assert real.tolist() == [[1, 0, 4], [4, 1.5, 10]]
    assert affine.encode(real).tolist() == [[1, 1, 1], [4, 4, 4]]
    low, high = affine.range
    assert low.tolist() == [-128, -64.5, -254]
    assert high.tolist() == [127, 63, 256]


def test_the_quotient_has_the_precision_of_the_numbers() -> None:
    scale, x = np.float32(0.1), np.float32(0.35)
    affine = Affine.single(float(scale), 0, TensorType.INT8)
    assert x / scale == np.float32(3.5)  # rounded up to the half
    assert float(x) / float(scale) < 3.5
    assert affine.encode(np.array([x])).tolist() == [4]
    assert affine.encode(np.array([x], np.float64)).tolist() == [3]


def test_what_is_no_number_gets_an_end() -> None:
    affine = Affine.single(1.0, 3, TensorType.UINT8)
    assert affine.encode(np.array([np.nan, np.inf, -np.inf])).tolist() == [0, 255, 0]


@pytest.mark.parametrize(
    ("dtype", "codes"), [(TensorType.INT8, 15), (TensorType.INT4, 8), (TensorType.INT16, 30)]
)
def test_bytes_count_codes_scales_and_zero_points(dtype: TensorType, codes: int) -> None:
    affine = Affine.channels(np.ones(5), np.zeros(5), 0, dtype)
    assert affine.bytes((5, 3)) == codes + 5 * (4 + 8)


def test_absent_zero_points_are_zero_and_one_is_for_all() -> None:
    for points, wanted in ((None, [0, 0]), ([], [0, 0]), ([5], [5, 5]), ([1, 2], [1, 2])):
        affine = Affine.of(tensor(TensorType.INT8, [0.5, 0.25], points), "x")
        assert [n.tolist() for n in affine.parameters] == [[0.5, 0.25], wanted]


def test_only_integers_with_scales_stand_for_real_numbers() -> None:
    assert affine_of(Value("x", TensorType.INT8, (2,))) is None
    assert affine_of(tensor(TensorType.INT8, None, [1])) is None
    floats = tensor(TensorType.FLOAT32, [0.5])
    assert is_affine(floats)
    assert affine_of(floats) is None
    assert affine_of(tensor(TensorType.INT8, [0.5])) is not None


def test_a_table_says_what_it_was_made_of() -> None:
    affine = Affine.channels(np.array([0.5, 0.25]), np.array([1, 2]), 0, TensorType.INT8)
    value = tensor(TensorType.INT8, None)
    value.quantization = affine.table()
    again = Affine.of(value, "x")
    assert again.same_numbers(affine)
    assert list(vectors(affine.table())) == ["min", "max", "scale", "zero_point"]
    assert [n.tolist() for n in stored_parameters(value)] == [[0.5, 0.25], [1, 2]]


def test_codes_mean_the_same_where_scales_zero_points_and_axis_agree() -> None:
    one, other = Affine.single(0.5, 1, TensorType.INT8), Affine.single(0.5, 2, TensorType.INT8)
    assert not one.same_numbers(other)
    assert one.same_numbers(Affine(one.scale, one.zero_point, 3, one.dtype))
    rows = Affine.channels(np.ones(2), np.zeros(2), 0, TensorType.INT8)
    assert not rows.same_numbers(Affine(rows.scale, rows.zero_point, 1, rows.dtype))


def test_entries_have_the_scales_of_their_rows() -> None:
    rows = Affine.channels(np.array([1, 2]), np.array([0, 1]), 0, TensorType.INT8)
    picked = rows.entries(np.array([1, 1, 0]), (2, 3))
    assert [n.tolist() for n in picked.parameters] == [[2, 2, 1], [1, 1, 0]]
    columns = Affine.channels(np.array([1, 2]), np.array([0, 1]), 1, TensorType.INT8)
    assert columns.entries(np.array([0]), (3, 2)) is columns


def test_entries_refuses_scales_of_another_number() -> None:
    rows = Affine.channels(np.ones(2), np.zeros(2), 0, TensorType.INT8)
    with pytest.raises(LucioleError, match=r"2 scales do not fit the axes \[3, 3\]"):
        rows.entries(np.array([0]), (3, 3))


def test_zero_is_its_code_in_quantized_activations_only() -> None:
    assert zero_code(tensor(TensorType.INT8, [0.5], [7])) == 7
    assert zero_code(tensor(TensorType.INT32, [0.5], [7])) == 0
    assert zero_code(Value("x", TensorType.INT8, (2,))) == 0


def test_zero_code_refuses_a_zero_point_outside_of_the_type() -> None:
    with pytest.raises(LucioleError, match="tensor 'x' has zero point 300, no UINT8"):
        zero_code(tensor(TensorType.UINT8, [0.5], [300]))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_halves_are_rounded_away_from_zero_in_their_own_type(kind: type) -> None:
    found = rounded(np.array([0.5, -0.5, 1.5, 2.5, -2.5, 0.49, -0.0], kind))
    assert found.tolist() == [1, -1, 2, 3, -3, 0, 0]
    assert found.dtype == kind
    assert np.signbit(found[-1])
