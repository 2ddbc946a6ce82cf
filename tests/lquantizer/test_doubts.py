"""Records that teach less than they seem to: a warning that says why, and none for others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.ir import Array
from luciole.lquantizer.calibration.doubts import doubts
from tests.networks import network, random

X = random(5, 40, 20)
WAYS: list[dict[str, Any]] = [
    {"scheme": "int8"},
    {"scheme": "w4a8", "proof": False},
    {"encode_bits": 2},
    {"compatible": "one"},
    {"scheme": "weights4"},
    {"scheme": "minifloat", "exponent": 4, "mantissa": 3, "scaled": True},
]


def halves(x: Array) -> Array:
    """Pixels from 0 to 1, read by an integer division."""
    return (np.abs(x) // np.float32(2)).clip(0, 1)


ODD: list[tuple[Callable[[Array], Array], str]] = [
    (lambda x: x[:1], "only 1 record teaches: "),
    (lambda x: x[:7], "only 7 records teach: "),
    (np.zeros_like, "input 'x': every number of all records is 0: is it what the network was"),
    (np.ones_like, "input 'x': every number of all records is 1: "),
    (lambda x: np.repeat(x[:1], 40, 0), "input 'x': its 36 records are all the same: "),
    (halves, "input 'x': it has only 2 different numbers, 0, 1: "),
    (lambda x: np.rint(2 * x).clip(-3, 3), "only 7 different numbers, -3, -2, -1, 0, ...: is"),
]


@pytest.mark.parametrize(("change", "sentence"), ODD)
def test_odd_records_are_a_warning(change: Callable[[Array], Array], sentence: str) -> None:
    warnings = luciole.quantize(network(), change(X), scheme="int8", rescale="none").report.warnings
    assert any(sentence in warning for warning in warnings)


@pytest.mark.parametrize("choices", WAYS, ids=str)
def test_every_way_that_learns_warns_of_few_records(choices: dict[str, Any]) -> None:
    found = luciole.quantize(network(), X[:4], **choices).report.warnings
    assert any("only 4 records teach: " in warning for warning in found)
    found = luciole.quantize(network(), X, **choices).report.warnings
    assert not any("teach" in warning or "input " in warning for warning in found)


def test_records_that_only_judge_are_no_matter() -> None:
    found = luciole.quantize(network(), X[:4], scheme="float16").report.warnings
    assert not any("teach" in warning for warning in found)


def test_many_different_numbers_and_whole_ones_are_not_odd() -> None:
    fine = {"x": X, "tokens": np.zeros((40, 3), np.int32), "wide": np.arange(800.0).reshape(40, 20)}
    assert list(doubts(fine)) == []
    assert list(doubts({"few": np.array([[1.0], [2.0]] * 20)})) == []
    assert list(doubts({"none": np.zeros((40, 0), np.float32)})) == []
