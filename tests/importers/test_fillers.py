"""What recipes fill constants with."""

from __future__ import annotations

import numpy as np
import pytest

from luciole.importers.recipe import fillers
from luciole.importers.recipe.fillers import fill
from luciole.ir.dtypes import NUMPY, PACKED, Array, unpack
from luciole.ir.errors import FormatError
from luciole.schema.enums import TensorType

T = TensorType


def filled(tag: str, arguments: list[str], dtype: TensorType, shape: tuple[int, ...]) -> Array:
    array = unpack(fill(tag, arguments, dtype, shape, (0, 0, 0)), dtype, shape)
    assert array is not None
    return array


@pytest.mark.parametrize(
    ("dtype", "arguments", "wanted"),
    [
        (T.FLOAT32, ["1", "-2.5", "1e-3f", "inf"], [1, -2.5, 1e-3, np.inf, 0]),
        (T.FLOAT16, ["0.1"], [0.1, 0, 0, 0, 0]),
        (T.INT64, [str(2**63 - 1), "-1"], [2**63 - 1, -1, 0, 0, 0]),
        (T.UINT8, ["255", "7.9"], [255, 7, 0, 0, 0]),
        (T.INT4, ["-8", "7", "1"], [-8, 7, 1, 0, 0]),
        (T.UINT4, ["15", "0x3"], [15, 3, 0, 0, 0]),
        (T.BOOL, ["1", "false", "TRUE"], [True, False, True, False, False]),
        (T.COMPLEX64, ["1+2j"], [1 + 2j, 0, 0, 0, 0]),
    ],
)
def test_explicit_values_come_first_and_zeros_after_them(
    dtype: TensorType, arguments: list[str], wanted: list[complex]
) -> None:
    kind = NUMPY[dtype] if dtype in NUMPY else PACKED[dtype][1]
    found = filled("explicit", arguments, dtype, (5,))
    np.testing.assert_array_equal(found, np.array(wanted).astype(kind))


@pytest.mark.parametrize("dtype", [*NUMPY, *PACKED])
def test_a_constant_is_the_same_everywhere(dtype: TensorType) -> None:
    assert filled("constant", ["1"], dtype, (2, 3)).tolist() == [[1, 1, 1], [1, 1, 1]]


def test_gaussian_numbers_have_mean_and_deviation() -> None:
    found = filled("gaussian", ["3", "0.5"], T.FLOAT32, (20_000,))
    assert found.mean() == pytest.approx(3, abs=0.02)
    assert found.std() == pytest.approx(0.5, abs=0.02)


def test_gaussian_integers_stay_in_their_range() -> None:
    for dtype, low, high in ((T.INT8, -128, 127), (T.UINT4, 0, 15), (T.INT16, -(2**15), 2**15 - 1)):
        found = filled("gaussian", ["0", "1e6"], dtype, (100,))
        assert (found.min(), found.max()) == (low, high)
    found = filled("gaussian", ["0", "3"], T.INT32, (20_000,))
    assert found.std() == pytest.approx((9 + 1 / 12) ** 0.5, abs=0.06)


def test_places_have_random_numbers_of_their_own() -> None:
    arrays = [
        fill("gaussian", ["0", "1"], T.FLOAT32, (9,), seed).tobytes()
        for seed in ((0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0), (0, 0, 0))
    ]
    assert len(set(arrays)) == 4
    assert arrays[0] == arrays[4]


def test_texts_are_laid_out_as_litert_reads_them() -> None:
    raw = fill("explicit", ["ab", "é"], T.STRING, (3,), ()).tobytes()
    assert np.frombuffer(raw[:20], np.int32).tolist() == [3, 20, 22, 24, 24]
    assert raw[20:] == b"ab\xc3\xa9"


@pytest.mark.parametrize(
    ("tag", "arguments", "dtype", "message"),
    [
        ("clock", [], T.FLOAT32, "filler 'clock' is none of explicit, constant, gaussian"),
        ("constant", [], T.FLOAT32, "filler 'constant' takes an argument, found none"),
        ("explicit", ["1"] * 6, T.FLOAT32, "6 values for 5 elements"),
        ("explicit", ["x"], T.FLOAT32, "'x' is no number"),
        ("explicit", ["x"], T.COMPLEX64, "'x' is no number"),
        ("explicit", ["2"], T.BOOL, "'2' is neither true nor false"),
        ("explicit", ["256"], T.UINT8, "256 is not in the range of UINT8"),
        ("explicit", ["nan"], T.INT8, "'nan' is no integer"),
        ("explicit", ["8"], T.INT4, "INT4 holds -8 to 7, found 0 to 8"),
        ("gaussian", ["1"], T.FLOAT32, "takes mean and standard deviation, found 1 arguments"),
        ("gaussian", ["0", "-1"], T.FLOAT32, "cannot draw from mean 0.0, deviation -1.0"),
        ("constant", ["1"], T.VARIANT, "there are no fillers for VARIANT"),
        ("constant", ["1"], T.STRING, "5 texts take filler 'explicit'"),
    ],
)
def test_fill_refuses_what_does_not_fit(
    tag: str, arguments: list[str], dtype: TensorType, message: str
) -> None:
    with pytest.raises(FormatError, match=message.replace("(", r"\(")):
        fill(tag, arguments, dtype, (5,), (0,))


LARGE = "take [0-9]+ bytes, a recipe's constants may take {} more .luciole chef --constants-limit"


@pytest.mark.parametrize(("dtype", "tag"), [(T.FLOAT32, "gaussian"), (T.STRING, "explicit")])
def test_fill_refuses_more_bytes_than_constants_may_take(dtype: TensorType, tag: str) -> None:
    arguments = ["0", "1"]
    with pytest.raises(FormatError, match=f"4000000000 .* {LARGE.format(2**29)}"):
        fill(tag, arguments, dtype, (4_000_000_000,), (0,))
    with pytest.raises(FormatError, match=LARGE.format(25)):
        fill(tag, arguments, dtype, (7,), (0,), 25)


def test_fill_refuses_shapes_that_no_array_has() -> None:
    with pytest.raises(FormatError, match="100000 axes, at most 32 are possible"):
        fill("constant", ["1"], T.INT8, (2**31 - 1,) * 100_000, (0,))
    with pytest.raises(FormatError, match=r"shape \[2, -1\] has a negative extent"):
        fill("constant", ["1"], T.INT8, (2, -1), (0,))


@pytest.mark.parametrize("dtype", [T.FLOAT32, T.INT8, T.INT4, T.UINT4])
def test_a_large_constant_is_made_in_parts_that_fit(
    dtype: TensorType, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = [("gaussian", ["0", "3"]), ("explicit", ["1", "2", "3"] * 30), ("constant", ["5"])]
    whole = [fill(tag, given, dtype, (101,), (3,)).tobytes() for tag, given in cases]
    monkeypatch.setattr(fillers, "_BLOCK", 8)
    assert [fill(tag, given, dtype, (101,), (3,)).tobytes() for tag, given in cases] == whole


def test_numbers_that_are_too_large_for_their_type_are_infinite() -> None:
    for tag, arguments in (("constant", ["1e300"]), ("gaussian", ["1e300", "-0"])):
        assert fill(tag, arguments, T.FLOAT32, (2,), (0,)).view(np.float32).tolist() == [np.inf] * 2
