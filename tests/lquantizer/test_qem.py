"""Quantization-error minimisation against plain loops, NumPy's least squares and known optima."""

from __future__ import annotations

import numpy as np
import pytest

from luciole.ir import Array
from luciole.lquantizer.formats.levels import Samples, Settings, fit

RNG = np.random.default_rng(31)
ONCE = Settings(iterations=1)
SOLVED = Settings(method="least_squares", iterations=1, ridge=1e-12)


def nearest_signs(x: Array, basis: Array) -> Array:
    """[n, K]: the signs of each number's nearest level, the lower one at a tie; a plain loop."""
    k = len(basis)
    signs = [[1.0 if code >> i & 1 else -1.0 for i in range(k)] for code in range(2**k)]
    rising = sorted(signs, key=lambda s: float(np.dot(s, basis)))
    values = [float(np.dot(s, basis)) for s in rising]
    return np.array([rising[int(np.argmin([abs(v - q) for q in values]))] for v in x])


def gradient(x: Array, target: Array, basis: Array, settings: Settings) -> Array:
    """a - lr / n * sum_i [((b_i, a) - x_i) b_i + lambda a], several times for one encoding."""
    signs, a = nearest_signs(x, basis), basis.copy()
    for _ in range(settings.steps):
        total = np.zeros_like(a)
        for b, t in zip(signs, target, strict=True):
            total += (np.dot(b, a) - t) * b + settings.penalty * a
        a = a - settings.learning_rate / len(x) * total
    return a


def mean_squared_error(x: Array, target: Array, basis: Array) -> float:
    return float(np.mean((nearest_signs(x, basis) @ basis - target) ** 2))


@pytest.mark.parametrize("bits", [1, 2, 3, 4])
@pytest.mark.parametrize("steps", [1, 5])
def test_a_gradient_iteration_does_what_the_formula_says(bits: int, steps: int) -> None:
    settings = Settings(iterations=1, steps=steps, learning_rate=0.07, penalty=0.01)
    x, start = RNG.normal(size=(4, 60)), RNG.normal(size=(4, bits))
    found = fit(Samples.of(x), bits, settings, start)
    for row in range(4):
        wanted = gradient(x[row], x[row], start[row], settings)
        np.testing.assert_allclose(found.basis[row], wanted, rtol=1e-10)
        error = mean_squared_error(x[row], x[row], wanted)
        np.testing.assert_allclose(found.mse[row], error, rtol=1e-10)


@pytest.mark.parametrize("bits", [1, 2, 3])
def test_a_least_squares_iteration_is_numpys_for_the_same_codes(bits: int) -> None:
    x, start = RNG.normal(size=(4, 90)), np.abs(RNG.normal(size=(4, bits)))
    found = fit(Samples.of(x), bits, SOLVED, start).basis
    for row in range(4):
        wanted = np.linalg.lstsq(nearest_signs(x[row], start[row]), x[row], rcond=None)[0]
        np.testing.assert_allclose(found[row], wanted, rtol=1e-6)


@pytest.mark.parametrize("method", ["gradient", "least_squares"])
def test_targets_pull_the_levels_and_values_choose_the_codes(method: str) -> None:
    values, start = RNG.normal(size=80), np.array([[1.0, 0.4]])
    targets = values + RNG.normal(size=80)
    energy = np.array([np.mean(targets**2)])
    samples = Samples(values[None], targets[None], np.ones(80), energy)
    if method == "gradient":
        found = fit(samples, 2, ONCE, start)
        wanted = gradient(values, targets, start[0], ONCE)
    else:
        found = fit(samples, 2, SOLVED, start)
        wanted = np.linalg.lstsq(nearest_signs(values, start[0]), targets, rcond=None)[0]
    np.testing.assert_allclose(found.basis[0], wanted, rtol=1e-6)
    error = mean_squared_error(values, targets, found.basis[0])
    np.testing.assert_allclose(found.mse[0], error, rtol=1e-9)


def test_the_ridge_holds_a_direction_that_one_code_leaves_open() -> None:
    """All samples are 1: only the code (+, -) occurs, and a_0 - a_1 moves from 1.5 to 1."""
    settings = Settings(method="least_squares", iterations=1)
    found = fit(Samples.of(np.ones(50)), 2, settings, np.array([[2.0, 0.5]]))
    np.testing.assert_allclose(found.basis, [[1.75, 0.75]], atol=1e-5)


def test_the_ridge_holds_a_direction_that_collinear_codes_leave_open() -> None:
    """Only (+, -) and its opposite occur."""
    x = np.array([1.0, -1.0, 1.2, -1.2, 0.8, -0.8])
    settings = Settings(method="least_squares", iterations=1)
    found = fit(Samples.of(x), 2, settings, np.array([[2.0, 0.5]]))
    np.testing.assert_allclose(found.basis, [[1.75, 0.75]], atol=1e-5)


@pytest.mark.parametrize("method", ["gradient", "least_squares"])
@pytest.mark.parametrize("value", [0.0, 1.0, -3.0])
def test_samples_that_are_all_equal_are_fitted(method: str, value: float) -> None:
    settings = Settings(method=method, iterations=2000)  # type: ignore[arg-type]  # parametrised
    found = fit(Samples.of(np.full((2, 40), value)), 3, settings)
    assert np.isfinite(found.basis).all()
    np.testing.assert_allclose(found.mse, 0, atol=1e-5)


@pytest.mark.parametrize("method", ["gradient", "least_squares"])
@pytest.mark.parametrize("own_targets", [True, False])
def test_compressed_samples_give_the_same_fit_and_error(method: str, own_targets: bool) -> None:
    values = np.round(RNG.normal(size=3000), 1)  # under a hundred different numbers
    targets = values if own_targets else values + RNG.normal(size=3000) * 0.3
    energy = np.array([np.mean(targets**2)])
    plain = Samples(values[None], targets[None], np.ones(3000), energy)
    small = Samples.compressed(values, None if own_targets else targets)
    assert small.values.size < 100
    settings = Settings(method=method)  # type: ignore[arg-type]  # parametrised
    start = np.array([[1.0, 0.5, 0.2]])
    wanted, found = (fit(s, 3, settings, start) for s in (plain, small))
    np.testing.assert_allclose(found.basis, wanted.basis, rtol=1e-9)
    np.testing.assert_allclose(found.mse, wanted.mse, rtol=1e-9)


def test_bins_keep_counts_means_and_nearly_the_fit() -> None:
    values = RNG.normal(size=30000)
    small = Samples.compressed(values, bins=512)
    assert small.values.size <= 512
    assert small.weights.sum() == 30000
    np.testing.assert_allclose(small.values @ small.weights, [values.sum()], atol=1e-7)
    wanted = fit(Samples.of(values), 3, Settings())
    found = fit(small, 3, Settings())
    np.testing.assert_allclose(found.basis, wanted.basis, rtol=0.02)
    np.testing.assert_allclose(found.mse, wanted.mse, rtol=0.02)


def test_compressed_samples_may_have_any_shape() -> None:
    values = RNG.normal(size=(5, 4, 3)).astype(np.float32)
    small = Samples.compressed(values)
    np.testing.assert_array_equal(small.values[0], np.sort(values.astype(np.float64).ravel()))
    np.testing.assert_allclose(small.energy, [np.mean(values.astype(np.float64) ** 2)])


def test_a_seed_gives_the_same_fit_every_time() -> None:
    samples = Samples.of(RNG.normal(size=(6, 200)))
    first, again, other = (fit(samples, 3, Settings(seed=s)).basis for s in (5, 5, 6))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_the_random_start_is_normal_numbers_of_the_rows_size() -> None:
    x = RNG.normal(size=(3, 50)) * np.array([[1e-3], [1.0], [1e4]])
    found = fit(Samples.of(x), 2, Settings(iterations=0, seed=9)).basis
    drawn = np.abs(np.random.default_rng(9).standard_normal((3, 2)))
    np.testing.assert_allclose(found, drawn * np.sqrt((x**2).mean(1))[:, None])


def test_the_greedy_start_is_the_mean_size_of_what_is_left() -> None:
    x = RNG.normal(size=(1, 40))
    found = fit(Samples.of(x), 3, Settings(initialisation="greedy", iterations=0)).basis[0]
    rest = x[0].tolist()
    for a in found:
        assert a == pytest.approx(sum(abs(v) for v in rest) / 40, rel=1e-12)
        rest = [v - a if v > 0 else v + a for v in rest]


def test_the_greedy_start_counts_compressed_samples_by_their_weight() -> None:
    x = np.round(RNG.normal(size=2000), 1)
    settings = Settings(initialisation="greedy", iterations=0)
    wanted, found = (fit(s, 2, settings).basis for s in (Samples.of(x), Samples.compressed(x)))
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize(("bits", "optimum"), [(1, 0.3634), (2, 0.1175), (3, 0.0345)])
@pytest.mark.parametrize("initialisation", ["random", "greedy"])
@pytest.mark.parametrize("method", ["gradient", "least_squares"])
def test_the_error_on_gaussian_data_is_near_the_optimum(
    method: str, initialisation: str, bits: int, optimum: float
) -> None:
    """Max, "Quantizing for minimum distortion", 1960, table I; three numbers for eight levels
    cannot reach it quite."""
    x = np.random.default_rng(1).normal(size=20000)
    x = (x - x.mean()) / x.std()
    settings = Settings(method, initialisation, iterations=300)  # type: ignore[arg-type]  # same
    error = float(fit(Samples.of(x), bits, settings).mse[0])
    assert 0.98 * optimum < error < 1.1 * optimum


def test_large_and_small_rows_do_not_disturb_each_other() -> None:
    x = RNG.normal(size=100)
    both = fit(
        Samples.of(np.stack([x, 1e6 * x])), 2, Settings(seed=0), np.ones((2, 2)) * [[1], [1e6]]
    )
    np.testing.assert_allclose(both.basis[1], both.basis[0] * 1e6, rtol=1e-9)
