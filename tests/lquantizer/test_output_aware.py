"""Codes and bases fitted in the inputs' metric, against plain loops and normal equations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from luciole.ir import Array, learned_levels
from luciole.lquantizer.calibration.gram import Full
from luciole.lquantizer.formats.coded import Coded
from luciole.lquantizer.methods.weight_codes import (
    descend,
    fit_codes,
    move_bases,
    plain_codes,
    rounded,
)
from tests.lquantizer.layer_support import loss, moments, weights_of


@pytest.mark.parametrize("bits", [1, 2, 3])
@pytest.mark.parametrize("offset", [False, True])
def test_codes_fitted_to_the_output_have_a_smaller_output_error(bits: int, offset: bool) -> None:
    h, weights = moments(70), weights_of(70, 6)
    plain = plain_codes(weights, bits, offset)
    fitted = fit_codes(Full(h), weights, plain, offset)
    assert loss(h, weights, fitted) < 0.5 * loss(h, weights, plain)


def test_plain_codes_take_the_nearest_level() -> None:
    weights = weights_of(30, 3)
    coded = plain_codes(weights, 2, True)
    level, _ = learned_levels.levels(coded.basis, coded.offset)
    nearest = np.abs(weights.T[:, :, None] - level[:, None, :]).min(-1).T
    np.testing.assert_allclose(np.abs(weights - coded.values()), nearest, atol=1e-6)


def test_important_inputs_are_coded_closer() -> None:
    weights = weights_of(40, 5)
    importance = np.where(np.arange(40) < 8, 100.0, 1.0)
    errors = [
        np.mean((plain_codes(weights, 2, False, given).values() - weights)[:8] ** 2)
        for given in (importance, None)
    ]
    assert errors[0] < 0.8 * errors[1]


def unblocked(h: Array, weights: Array, coded: Coded, sequence: Array) -> Array:
    """GPTQ without blocks, in float64: each input's error is told to all the rest at once."""
    inverse = np.linalg.inv(h[np.ix_(sequence, sequence)].astype(np.float64))
    upper = np.linalg.cholesky(inverse).T
    rest = weights[sequence].astype(np.float64)
    level, order = learned_levels.levels(coded.basis, coded.offset)
    found = np.empty(weights.shape, np.intp)
    for i, row in enumerate(sequence):
        place = [int(np.argmin(np.abs(level[o] - rest[i, o]))) for o in range(weights.shape[1])]
        outputs = np.arange(weights.shape[1])
        found[row] = order[outputs, place]
        error = (rest[i] - level[outputs, place]) / upper[i, i]
        rest[i + 1 :] -= upper[i, i + 1 :, None] * error
    return found


@pytest.mark.parametrize("inputs", [1, 5, 64, 65, 150])
@pytest.mark.parametrize("bits", [1, 3])
def test_rounding_in_blocks_is_rounding_one_by_one(inputs: int, bits: int) -> None:
    h, weights = moments(inputs, damping=0.1), weights_of(inputs, 4)
    coded = plain_codes(weights, bits, False)
    sequence = np.argsort(-np.diag(h))
    found = rounded(Full(h), weights, coded, sequence)
    wanted = unblocked(h, weights, coded, sequence)
    np.testing.assert_array_equal(
        replace(coded, code=found).values(), replace(coded, code=wanted).values()
    )


def test_a_descent_never_raises_the_loss_and_stops_when_nothing_changes() -> None:
    h, weights = moments(90), weights_of(90, 5)
    coded = plain_codes(weights, 2, False)
    sequence = np.argsort(-np.diag(h))
    losses = [loss(h, weights, coded)]
    for _ in range(100):
        changed = descend(Full(h), weights, coded, sequence)
        losses.append(loss(h, weights, coded))
        assert losses[-1] <= losses[-2] * (1 + 1e-5)
        if not changed:
            break
    assert not changed
    assert losses[-1] == losses[-2]
    assert losses[-1] < 0.7 * losses[0]


def test_after_a_descent_no_single_code_can_be_bettered() -> None:
    h, weights = moments(12), weights_of(12, 3)
    coded = plain_codes(weights, 2, False)
    while descend(Full(h), weights, coded, np.arange(12)):
        pass
    best = loss(h, weights, coded)
    for place in np.ndindex(12, 3):
        for code in range(4):
            other = replace(coded, code=coded.code.copy())
            other.code[place] = code
            assert loss(h, weights, other) >= best * (1 - 1e-5)


@pytest.mark.parametrize("bits", [1, 2, 4])
@pytest.mark.parametrize("offset", [False, True])
def test_moved_bases_solve_the_normal_equations_of_each_output(bits: int, offset: bool) -> None:
    """(B^T H B + ridge) a = B^T H w + ridge a', the ridge 1e-4 of the diagonal's mean."""
    h, weights = moments(50), weights_of(50, 4)
    coded = plain_codes(weights, bits, offset)
    before = replace(coded, code=coded.code.copy())
    move_bases(Full(h), weights, coded, offset)
    np.testing.assert_array_equal(coded.code, before.code)
    for o in range(4):
        b = learned_levels.sign_codes(bits)[coded.code[:, o]]
        present = before.basis[o]
        if offset:
            b = np.concatenate([b, np.ones((50, 1))], 1)
            present = np.append(present, before.offset[o])
        left = b.T @ h.astype(np.float64) @ b
        ridge = 1e-4 * np.trace(left) / len(left)
        right = b.T @ h.astype(np.float64) @ weights[:, o] + ridge * present
        wanted = np.linalg.solve(left + ridge * np.eye(len(left)), right)
        np.testing.assert_allclose(coded.basis[o], wanted[:bits], rtol=2e-3, atol=2e-4)
        if offset:
            np.testing.assert_allclose(coded.offset[o], wanted[bits], rtol=2e-3, atol=2e-4)
    if not offset:
        np.testing.assert_array_equal(coded.offset, np.zeros(4))


def test_moved_bases_lower_the_loss() -> None:
    h, weights = moments(50), weights_of(50, 4)
    coded = plain_codes(weights, 2, True)
    before = loss(h, weights, coded)
    move_bases(Full(h), weights, coded, True)
    assert loss(h, weights, coded) < before


def test_the_start_is_not_changed() -> None:
    h, weights = moments(30), weights_of(30, 3)
    start = plain_codes(weights, 2, True)
    kept = [a.copy() for a in (start.code, start.basis, start.offset)]
    fitted = fit_codes(Full(h), weights, start, True)
    for found, wanted in zip((start.code, start.basis, start.offset), kept, strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert not np.array_equal(fitted.basis, start.basis)


def test_the_same_input_gives_the_same_codes() -> None:
    h, weights = moments(80), weights_of(80, 4)
    first, again = (
        fit_codes(Full(h), weights, plain_codes(weights, 2, True, None, 7), True) for _ in range(2)
    )
    np.testing.assert_array_equal(first.code, again.code)
    np.testing.assert_array_equal(first.basis, again.basis)
    np.testing.assert_array_equal(first.offset, again.offset)


# ------------------------------------------------------------------------------------ extremes
@pytest.mark.parametrize(("inputs", "outputs"), [(1, 1), (1, 5), (40, 1)])
@pytest.mark.parametrize("bits", [1, 2, 4])
def test_one_input_or_one_output(inputs: int, outputs: int, bits: int) -> None:
    h, weights = moments(inputs), weights_of(inputs, outputs)
    plain = plain_codes(weights, bits, False)
    fitted = fit_codes(Full(h), weights, plain, False)
    assert fitted.values().shape == (inputs, outputs)
    tiny = 1e-6 * float(np.trace(weights.T @ h @ weights))
    assert loss(h, weights, fitted) <= loss(h, weights, plain) + tiny


def test_collapsed_bases_spread_again() -> None:
    """Equal elements leave two of four levels the same; a zero element leaves two pairs."""
    h, weights = moments(60), weights_of(60, 3)
    plain = plain_codes(weights, 2, False)
    for basis in ([0.5, 0.5], [0.8, 0.0], [0.0, 0.0]):
        start = replace(plain, basis=np.tile(np.array(basis), (3, 1)))
        fitted = fit_codes(Full(h), weights, start, False)
        assert np.isfinite(fitted.basis).all()
        one_bit = fit_codes(Full(h), weights, plain_codes(weights, 1, False), False)
        if any(basis):
            assert loss(h, weights, fitted) < 1.5 * loss(h, weights, one_bit)


def test_rows_of_zeros_stay_zeros() -> None:
    h, weights = moments(30), weights_of(30, 3)
    weights[:, 1] = 0
    for bits in (1, 2, 3):
        for offset in (False, True):
            fitted = fit_codes(Full(h), weights, plain_codes(weights, bits, offset), offset)
            np.testing.assert_allclose(fitted.values()[:, 1], 0, atol=1e-6)


def test_channels_that_never_vary_need_only_damping() -> None:
    """H is singular: constant inputs have empty rows, a doubled one gives two equal rows."""
    h, weights = moments(40, damping=0), weights_of(40, 4)
    h[:10], h[:, :10] = 0, 0
    h[11], h[:, 11] = h[10], h[:, 10]
    assert np.linalg.matrix_rank(h) < 31
    damped = np.asarray(h + 0.01 * np.diag(h).mean() * np.eye(40), np.float32)
    plain = plain_codes(weights, 2, False)
    fitted = fit_codes(Full(damped), weights, plain, False)
    assert np.isfinite(fitted.basis).all()
    assert loss(h, weights, fitted) < 0.5 * loss(h, weights, plain)
