"""Ranges that tensors' integers reach, and what they are chosen from."""

from __future__ import annotations

import numpy as np
import pytest

from luciole.ir import TensorType
from luciole.lquantizer.calibration.ranges import RULES, rule_of
from luciole.lquantizer.formats.affine import of_range
from tests.lquantizer.range_support import normal, watched


@pytest.mark.parametrize("seed", range(12))
def test_a_histogram_that_grows_is_one_of_all_batches(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = 10.0 ** rng.uniform(-6, 6, rng.integers(1, 7))
    batches = [normal(seed + n, 4, 50) * np.float32(size) for n, size in enumerate(sizes)]
    seen = watched(*batches)
    everything = np.concatenate(batches)
    assert (seen.low, seen.high) == (everything.min(), everything.max())
    middles, counts = seen.histogram()
    assert counts.sum() == everything.size
    low, high = middles - seen.width / 2, middles + seen.width / 2
    for k in np.flatnonzero(middles):
        inside = (everything >= low[k]) & (everything < high[k])
        assert inside.sum() == counts[k]


def test_zeros_are_counted_by_themselves() -> None:
    middles, counts = watched(np.maximum(normal(1, 10, 1000), 0)).histogram()
    assert counts[middles == 0].sum() == pytest.approx(5000, rel=0.05)
    assert middles.min() == 0


def test_extremes_of_each_record_are_kept() -> None:
    array = normal(3, 7, 30)
    seen = watched(array[:3], array[3:])
    np.testing.assert_array_equal(np.array(seen.lows, np.float32), array.min(1))
    np.testing.assert_array_equal(np.array(seen.highs, np.float32), array.max(1))


def test_rules_give_what_they_say() -> None:
    array = normal(4, 100, 4000)
    seen = watched(array)
    found = {name: rule_of(name)(seen, TensorType.INT8) for name in RULES}
    assert found["min_max"] == (array.min(), array.max())
    tail = np.quantile(array, [0.0001, 0.9999])
    np.testing.assert_allclose(found["percentile"], tail, atol=2 * seen.width)
    records = np.percentile(array.min(1), 1), np.percentile(array.max(1), 99)
    np.testing.assert_allclose(found["record_percentile"], records, rtol=1e-6)
    low = array.min(1).astype(np.float64)
    average = low[0]
    for one in low[1:]:
        average = 0.99 * average + 0.01 * one
    assert found["moving_average"][0] == pytest.approx(average)


def test_the_least_error_is_found() -> None:
    """No other range on a finer search of both sides gives less than a percent less."""
    array = np.concatenate([normal(5, 1, 500_000), np.array([[-14, 13]], np.float32)], 1)
    seen = watched(array)

    def error(low: float, high: float) -> float:
        affine = of_range((low, high), TensorType.INT8)
        return float(np.square(affine.decode(affine.encode(array)) - array).mean())

    low, high = rule_of("mse")(seen, TensorType.INT8)
    sides = [np.linspace(0.2, 1, 15) * end for end in (array.min(), array.max())]
    best = min(error(a, b) for a in sides[0] for b in sides[1])
    assert error(low, high) <= 1.01 * best
    assert error(low, high) < 0.7 * error(float(array.min()), float(array.max()))


@pytest.mark.parametrize("seed", range(20))
def test_zero_has_a_code_and_both_ends_are_within_a_step(seed: int) -> None:
    rng = np.random.default_rng(seed)
    low, high = sorted((rng.normal(size=2) * 10.0 ** rng.uniform(-6, 6)).tolist())
    for dtype in (TensorType.INT8, TensorType.UINT8, TensorType.INT16):
        affine = of_range((low, high), dtype)
        assert affine.decode(affine.encode(np.zeros(1)))[0] == 0
        ends = np.array([low, high])
        off = np.abs(affine.decode(affine.encode(ends)) - ends)
        assert (off <= 1.001 * affine.scale[0]).all()


def test_numbers_of_rules_are_read() -> None:
    seen = watched(normal(8, 50, 400))
    wide, narrow = (rule_of(f"percentile:{n}")(seen, TensorType.INT8) for n in (99.9, 90))
    assert wide[0] < narrow[0] < 0 < narrow[1] < wide[1]
