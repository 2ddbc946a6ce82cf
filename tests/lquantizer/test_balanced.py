"""Roundings whose errors sum up to little, against plain sums."""

from __future__ import annotations

import numpy as np
import pytest

import luciole
from luciole.ir.analysis.weights import has_weights, weights_of
from luciole.lquantizer.formats.integers import balanced
from tests.lquantizer.networks import images


@pytest.mark.parametrize(("taps", "channels"), [(9, 5), (1, 40), (9, 1), (4, 33)])
@pytest.mark.parametrize("most", [7, 127])
def test_errors_of_a_filter_and_of_an_output_sum_up_to_little(
    taps: int, channels: int, most: int
) -> None:
    steps = np.random.default_rng(taps).uniform(-most + 1, most - 1, (12, taps * channels))
    codes = np.rint(steps).astype(np.int8)
    found = balanced(codes, steps, channels, most)
    error = (found - steps).reshape(12, taps, channels)
    assert found.dtype == np.int8
    assert np.abs(found - codes.astype(int)).max() <= 1, "codes move by one"
    assert np.abs(error.sum((1, 2))).max() <= 0.5 + 1e-9
    assert np.abs(error.sum(1)).max() <= 1.5 + 1e-9, "one code of a filter may move for the whole"
    assert np.abs((codes - steps).sum(1)).max() > 0.6, "they were larger before"


def test_no_weights_are_no_obstacle() -> None:
    assert balanced(np.zeros((0, 4), np.int8), np.zeros((0, 4)), 4, 127).shape == (0, 4)


def test_errors_of_every_output_of_a_file_sum_up_to_little() -> None:
    model = images()
    pairs = [
        [found for op in m.graph.ops if has_weights(op) and (found := weights_of(op)) is not None]
        for m in (model, luciole.quantize(model, scheme="dynamic", rescale="none").model)
    ]
    assert len(pairs[0]) == len(pairs[1]) > 4
    for wanted, found in zip(*pairs, strict=True):
        weights = wanted.values()
        steps = np.abs(weights).max(1) / 127
        sums = (found.values() - weights).sum(1) / steps
        assert np.abs(sums).max() <= 0.5 + 1e-3


def test_codes_stay_within_their_limits() -> None:
    steps = np.full((1, 9), 7.0)
    steps[0, :8] = 6.6
    found = balanced(np.rint(steps).astype(np.int8), steps, 1, 7)
    assert found.max() <= 7
    assert abs((found - steps).sum()) <= 0.5


def test_errors_that_cancel_already_stay() -> None:
    steps = np.array([[1.25, 0.75, -2.25, -1.75]])
    codes = np.rint(steps).astype(np.int8)
    np.testing.assert_array_equal(balanced(codes, steps, 1, 127), codes)


def test_weights_that_are_all_the_same_sum_up_as_in_float() -> None:
    """The mean of inputs, which such a layer computes, is kept by the sum of codes alone."""
    steps = np.full((3, 36), 2.3)
    found = balanced(np.rint(steps).astype(np.int8), steps, 4, 127)
    assert np.abs(found.sum(1) - steps.sum(1)).max() <= 0.5
    assert set(np.unique(found)) == {2, 3}
