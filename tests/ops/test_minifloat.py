"""Minifloats: numbers against NumPy's half precision and against a list of all of them, operators
against these.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from luciole import Interpreter
from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.ir import Array, LucioleError, Model, ShapeError
from luciole.ir.minifloat import Minifloat, pack_codes, unpack_codes
from luciole.ir.ops.minifloat import MinifloatDecode, MinifloatRound, constant_codes
from tests.native_support import check_compiled
from tests.support import one_op, run_reference

pytestmark = pytest.mark.filterwarnings("error")

SPREAD = np.random.default_rng(1)
NUMBERS = (SPREAD.normal(0, 1, 3000) * np.exp2(SPREAD.uniform(-20, 20, 3000))).astype(np.float32)
EXTREMES = np.array([0, -0.0, 1e-40, -1e-40, 3e38, -3e38, np.inf, -np.inf], np.float32)
SOME = [(3, 0), (2, 1), (2, 4), (3, 2), (3, 5), (4, 3), (4, 4), (5, 5), (5, 10), (7, 16)]


def attributes(numbers: Minifloat) -> dict[str, Any]:
    return {
        "exponent_bits": numbers.exponent,
        "mantissa_bits": numbers.mantissa,
        "shift": numbers.shift,
    }


def every_number(numbers: Minifloat) -> Array:
    """All that codes stand for but NaN, from the definition, one by one."""
    bias = 2 ** (numbers.exponent - 1) - 1
    found = [
        (1 if e else 2) * (bool(e) + m / 2**numbers.mantissa) * 2.0 ** (e - bias + numbers.shift)
        for e in range(2**numbers.exponent - 1)
        for m in range(2**numbers.mantissa)
    ]
    return np.array([-x for x in reversed(found)] + found[1:])


def nearest(x: Array, numbers: Minifloat) -> Array:
    """The nearest of all numbers, halves to the one with an even code, or, without a mantissa, to 0
    and to the larger power of two, by looking at all.
    """
    every = every_number(numbers)
    middle = len(every) // 2
    distance = np.abs(every[None] - np.clip(x, every[0], every[-1])[:, None].astype(np.float64))
    odd = np.abs(np.arange(len(every)) - middle) % 2
    last = odd if numbers.mantissa else np.where(every == 0.0, -np.inf, -np.abs(every))
    return every[np.lexsort((np.broadcast_to(last, distance.shape), distance), axis=1)[:, 0]]


def test_half_precision_is_one_of_them() -> None:
    half = Minifloat(5, 10)
    codes = np.arange(2**16, dtype=np.uint16)
    theirs = codes.view(np.float16).astype(np.float64)
    kept = np.isfinite(theirs)
    np.testing.assert_array_equal(half.decode(codes)[kept], theirs[kept])
    assert np.isnan(half.decode(codes)[~kept]).all()
    x = np.clip(NUMBERS, -65504, 65504)
    rounded = x.astype(np.float16)
    np.testing.assert_array_equal(half.round(NUMBERS), rounded.astype(np.float32))
    np.testing.assert_array_equal(half.encode(NUMBERS), rounded.view(np.uint16))


@pytest.mark.parametrize(("exponent", "mantissa"), [(3, 4), (4, 3), (5, 2)])
def test_8_bits_are_those_of_ml_dtypes(exponent: int, mantissa: int) -> None:
    theirs = pytest.importorskip("ml_dtypes")
    dtype = getattr(theirs, f"float8_e{exponent}m{mantissa}")
    numbers = Minifloat(exponent, mantissa)
    x = np.clip(NUMBERS, -numbers.largest, numbers.largest)
    rounded = x.astype(dtype)
    np.testing.assert_array_equal(numbers.round(x), rounded.astype(np.float32))
    np.testing.assert_array_equal(numbers.encode(x), rounded.view(np.uint8))


@pytest.mark.parametrize(("exponent", "mantissa"), SOME[:6])
@pytest.mark.parametrize("shift", [0, -3, 5])
def test_numbers_are_rounded_to_the_nearest(exponent: int, mantissa: int, shift: int) -> None:
    numbers = Minifloat(exponent, mantissa, shift)
    between = every_number(numbers)
    ties = ((between[:-1] + between[1:]) / 2).astype(np.float32)
    x = np.concatenate([NUMBERS[:400], EXTREMES, ties])
    np.testing.assert_array_equal(numbers.round(x), nearest(x, numbers))
    assert numbers.largest == between[-1]


@pytest.mark.parametrize(("exponent", "mantissa"), SOME)
def test_codes_come_back(exponent: int, mantissa: int) -> None:
    numbers = Minifloat(exponent, mantissa, -2)
    codes = numbers.encode(NUMBERS)
    np.testing.assert_array_equal(numbers.decode(codes), numbers.round(NUMBERS))
    packed = pack_codes(codes, numbers.bits)
    assert packed.nbytes == numbers.bytes(codes.shape)
    np.testing.assert_array_equal(unpack_codes(packed, numbers.bits, codes.size), codes)


@pytest.mark.parametrize(("exponent", "mantissa"), SOME)
@pytest.mark.parametrize("shift", [0, -32, 32])
@pytest.mark.parametrize("x", [NUMBERS.reshape(40, 75), EXTREMES, np.full((), 0.3, np.float32)])
def test_results_are_rounded(exponent: int, mantissa: int, shift: int, x: Array) -> None:
    numbers = Minifloat(exponent, mantissa, shift)
    given = attributes(numbers)
    (ours,) = run_reference(MinifloatRound, [x], **given)
    np.testing.assert_array_equal(ours, numbers.round(x))
    check_compiled(MinifloatRound, [x], **given)


def test_nan_stays_nan() -> None:
    assert np.isnan(Minifloat(4, 3).round(np.array([np.nan]))).all()


def decoded(numbers: Minifloat, x: Array) -> Model:
    """A model whose only operator reads numbers from codes."""
    packed = pack_codes(numbers.encode(x), numbers.bits)
    dims = np.array(x.shape, np.int32)
    return one_op(MinifloatDecode, [packed, dims], (0, 1), **attributes(numbers))


def test_files_hold_codes() -> None:
    numbers, x = Minifloat(4, 4, -1), NUMBERS[:35].reshape(5, 7)
    model = from_bytes(to_bytes(decoded(numbers, x)))
    (op,) = model.graph.ops
    assert isinstance(op, MinifloatDecode)
    assert (op.exponent_bits, op.mantissa_bits, op.shift) == (4, 4, -1)
    (result,) = Interpreter(model).run({}).values()
    np.testing.assert_array_equal(result, numbers.round(x))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"exponent_bits": 1}, "the exponent has 1 bits, 2 to 7 are possible"),
        ({"mantissa_bits": 17}, "the mantissa has 17 bits, 0 to 16 are possible"),
        ({"shift": 33}, "the shift is 33, -32 to 32 are possible"),
    ],
)
def test_other_numbers_are_refused(given: dict[str, Any], message: str) -> None:
    dims = np.zeros(1, np.int32)
    with pytest.raises(LucioleError, match=message):
        run_reference(MinifloatRound, [NUMBERS], **given)
    with pytest.raises(LucioleError, match=message):
        run_reference(MinifloatDecode, [np.zeros(0, np.uint8), dims], **given)


@pytest.mark.parametrize("constant", [(0, 1), ()])
@pytest.mark.parametrize(
    ("shape", "message"),
    [((4, -1), "nothing below 0"), ((9,), "codes has 9 bytes, dims .9. take 18")],
)
def test_codes_that_do_not_fit_are_refused(
    shape: tuple[int, ...], message: str, constant: tuple[int, ...]
) -> None:
    with pytest.raises(ShapeError, match=message):
        run_reference(MinifloatDecode, [np.zeros(9, np.uint8), np.array(shape, np.int32)], constant)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.float32])
def test_codes_of_another_type_are_no_codes(dtype: Any) -> None:
    packed: Array = np.zeros(10, dtype)
    dims = np.array([10], np.int32)
    model = one_op(MinifloatDecode, [packed, dims], (0, 1), **attributes(Minifloat(4, 3)))
    (value,) = model.graph.outputs
    value.shape = (10,)
    assert (constant_codes(value) is None) == (dtype is not np.uint8)
