"""Rows, their moments, and targets of which a RELU lets pass a part only; NumPy is the oracle."""

from __future__ import annotations

import numpy as np
import pytest

from luciole.ir import Array
from luciole.lquantizer.calibration.moments import Part
from tests.networks import random

Z, T = random(1, 200, 6), random(2, 200, 3)


def relu_error(z: Array, t: Array, w: Array, b: Array) -> float:
    return float(np.mean((np.maximum(z @ w + b, 0) - np.maximum(t, 0)) ** 2))


def test_moments_are_those_of_numpy() -> None:
    m = Part(Z, T).moments
    covariance = np.cov(np.concatenate([Z, T], 1), rowvar=False, bias=True)
    every = np.arange(6)
    np.testing.assert_allclose(m.h.block(every), covariance[:6, :6], atol=1e-5)
    np.testing.assert_allclose(m.cross, covariance[:6, 6:], atol=1e-5)
    np.testing.assert_allclose(m.inputs, Z.mean(0), atol=1e-6)
    np.testing.assert_allclose(m.targets, T.mean(0), atol=1e-6)
    size = np.diag(covariance[:6, :6]).mean()
    added = m.damped(0.5).block(every) - m.h.block(every)
    np.testing.assert_allclose(added, 0.5 * size * np.eye(6), atol=1e-5)


def test_a_weak_ridge_is_least_squares_and_a_strong_one_keeps_the_weights() -> None:
    given = random(3, 6, 3)
    solved = np.linalg.lstsq(Z - Z.mean(0), T - T.mean(0))[0]
    np.testing.assert_allclose(Part(Z, T).refitted(given, 1e-6), solved, atol=1e-3)
    np.testing.assert_allclose(Part(Z, T).refitted(given, 1e4), given, atol=1e-3)


def test_some_of_the_rows() -> None:
    rows = np.arange(200) % 3 == 0
    part = Part(Z, T, np.zeros_like(T)).taken(rows)
    np.testing.assert_array_equal(part.z, Z[rows])
    np.testing.assert_array_equal(part.targets, T[rows])
    assert part.floors is not None
    assert part.floors.shape == T[rows].shape


def test_errors_below_the_floor_do_not_count() -> None:
    part = Part(Z, T, np.zeros_like(T))
    y = T + random(4, 200, 3)
    wanted = np.mean((np.maximum(y, 0) - np.maximum(T, 0)) ** 2)
    assert part.error(y) == pytest.approx(float(wanted), rel=1e-5)
    assert part.error(np.where(T < 0, np.float32(-9), T)) == 0
    assert part.signal == pytest.approx(float(np.mean(np.maximum(T, 0) ** 2)), rel=1e-5)
    assert Part(Z, T).error(y) == pytest.approx(float(np.mean((y - T) ** 2)), rel=1e-5)


def test_a_floor_may_differ_from_row_to_row() -> None:
    """As behind an ADD: what the other branch brings is cut off together with the result."""
    branch = random(5, 200, 3)
    part, y = Part(Z, T, -branch), T + random(4, 200, 3)
    wanted = np.mean((np.maximum(y + branch, 0) - np.maximum(T + branch, 0)) ** 2)
    assert part.error(y) == pytest.approx(float(wanted), rel=1e-5)


def test_a_refit_uses_the_freedom_below_the_floor() -> None:
    """Targets that a linear map with RELU reaches exactly where it is above 0, and nowhere else."""
    truth = random(6, 6, 3)
    t = np.maximum(Z @ truth, -0.3).astype(np.float32)  # flat below: least squares has to bend
    part, start = Part(Z, t, np.zeros_like(t)), np.zeros((6, 3), np.float32)
    plain = Part(Z, t)
    found, linear = part.refitted(start, 1e-4, rectified=True), plain.refitted(start, 1e-4)
    free = relu_error(Z, t, found, part.bias(found))
    assert free < 0.5 * relu_error(Z, t, linear, plain.bias(linear))


def test_the_bias_keeps_the_mean() -> None:
    w = random(7, 6, 3)
    np.testing.assert_allclose((Z @ w + Part(Z, T).bias(w)).mean(0), T.mean(0), atol=1e-5)


@pytest.mark.parametrize("noise", [0.3, 30])
def test_the_bias_behind_a_relu_is_no_worse_than_one_that_keeps_the_mean(noise: float) -> None:
    w = random(7, 6, 3)
    t = (np.maximum(Z @ w - 1, -0.2) + noise * T).astype(np.float32)
    found, mean = Part(Z, t, np.zeros_like(t)).bias(w), Part(Z, t).bias(w)
    errors = relu_error(Z, t, w, found), relu_error(Z, t, w, mean)
    assert errors[0] <= errors[1]
    assert (errors[0] < 0.7 * errors[1]) == (noise < 1)


def test_a_steady_bias_follows_the_error_of_all_records_and_not_that_of_one() -> None:
    """200 rows of 20 records: all are off by 1, or one of them alone is off by 20."""
    w, before, records = random(7, 6, 3), np.full(3, 0.5, np.float32), np.arange(200) % 20
    for rows, step in ((slice(None), 1.0), (records == 4, 20.0)):
        t = Z @ w + before
        t[rows] += step
        part, alone = Part(Z, t.astype(np.float32)), step == 20
        np.testing.assert_allclose(part.bias(w), before + 1, atol=1e-4)
        moved = part.steady_bias(w, before, records)
        np.testing.assert_allclose(moved, before + (not alone), atol=1e-4)


def test_a_steady_bias_of_one_record_is_the_mean() -> None:
    part, w = Part(Z, T), random(7, 6, 3)
    bias = part.steady_bias(w, np.zeros(3, np.float32), np.zeros(200, np.intp))
    np.testing.assert_array_equal(bias, part.bias(w))
