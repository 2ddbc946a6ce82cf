"""Second moments by what few rows span, against the whole matrix and NumPy's solver."""

from __future__ import annotations

import numpy as np
import pytest

from luciole.interpreter import Interpreter
from luciole.lquantizer.calibration.gram import Full, Gram, Spanned, gram_of
from luciole.lquantizer.calibration.moments import Part
from luciole.lquantizer.calibration.watch import batch_for
from luciole.lquantizer.methods.weight_codes import fit_codes, plain_codes
from tests.networks import network, random

ROWS = random(1, 5, 40)
RIDGE = 0.3
MATRIX = ROWS.T.astype(np.float64) @ ROWS + RIDGE * np.eye(40)
BOTH = [Full(MATRIX.astype(np.float32)), Spanned(ROWS, RIDGE)]
WEIGHTS = random(2, 40, 7)


@pytest.mark.parametrize("gram", BOTH, ids=["full", "spanned"])
def test_both_forms_are_the_matrix(gram: Gram) -> None:
    places, order = np.array([3, 39, 0]), np.random.default_rng(0).permutation(40)
    np.testing.assert_allclose(gram.diagonal, np.diag(MATRIX), rtol=1e-5)
    np.testing.assert_allclose(gram.times(WEIGHTS), MATRIX @ WEIGHTS, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(gram.block(places), MATRIX[np.ix_(places, places)], atol=1e-5)
    ordered = gram.ordered(order).block(np.arange(40))
    np.testing.assert_allclose(ordered, MATRIX[np.ix_(order, order)], atol=1e-5)
    damped = MATRIX + 0.5 * np.eye(40)
    found = gram.damped(0.5).solved(WEIGHTS)
    np.testing.assert_allclose(found, np.linalg.solve(damped, WEIGHTS), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("gram", BOTH, ids=["full", "spanned"])
def test_both_forms_follow_errors_that_move(gram: Gram) -> None:
    errors, places, moves = WEIGHTS.copy(), np.array([7, 2]), random(3, 2, 7)
    slope = gram.slope(errors.copy())
    slope.move(places, moves, np.arange(40))
    errors[places] += moves
    every = np.arange(40)
    np.testing.assert_allclose(slope.at(every), MATRIX @ errors, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("gram", BOTH, ids=["full", "spanned"])
def test_what_is_free_makes_up_for_what_is_fixed(gram: Gram) -> None:
    """Against the least error there is, solved anew at each step."""
    values = WEIGHTS + 0.1 * random(4, 40, 7)
    left = gram.elimination(WEIGHTS)
    for place in range(40):
        fixed, free = slice(0, place), slice(place, 40)
        pull = MATRIX[free, fixed] @ (values[fixed] - WEIGHTS[fixed])
        moves = -np.linalg.solve(MATRIX[free, free], pull)
        best = WEIGHTS[place] + moves[0]
        np.testing.assert_allclose(left.target(place), best, rtol=1e-3, atol=1e-3)
        left.fix(place, values[place])


@pytest.mark.parametrize("bits", [1, 2, 3])
def test_the_codes_are_the_same_by_either_form(bits: int) -> None:
    start = plain_codes(WEIGHTS, bits, True)
    full, spanned = (fit_codes(gram, WEIGHTS, start, True) for gram in BOTH)
    errors = [f.values() - WEIGHTS for f in (full, spanned)]
    losses = [float(np.sum(e * (MATRIX @ e))) for e in errors]
    assert losses[1] == pytest.approx(losses[0], rel=1e-3)
    assert np.mean(full.code != spanned.code) < 0.01


def test_few_rows_are_kept_as_they_are() -> None:
    few, many = gram_of(random(1, 19, 40)), gram_of(random(1, 20, 40))
    assert isinstance(few, Spanned)
    assert few.factor.shape == (19, 40)
    assert isinstance(many, Full)
    np.testing.assert_allclose(few.diagonal, np.square(random(1, 19, 40)).mean(0), rtol=1e-5)


def test_refitting_by_either_form_is_ridge_regression() -> None:
    z, targets = random(5, 9, 30), random(6, 9, 4)
    given = random(7, 30, 4)
    centred, aims = z - z.mean(0), targets - targets.mean(0)
    h = centred.T.astype(np.float64) @ centred / 9
    ridge = 0.05 * np.trace(h) / 30
    wanted = np.linalg.solve(h + ridge * np.eye(30), centred.T @ aims / 9 + ridge * given)
    found = Part(z, targets).refitted(given, 0.05)
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)


def test_batches_are_small_where_tensors_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    records = {"x": random(1, 100, 20)}
    # two of 50 need one plan, 64 and 36 two
    assert batch_for(Interpreter(network()), records) == 50
    each = 4 * (16 + 16 + 4)  # fc1, act1, fc2
    monkeypatch.setattr("luciole.lquantizer.calibration.watch._MOST_BYTES", 5 * each + 1)
    assert batch_for(Interpreter(network()), records) == 5
    monkeypatch.setattr("luciole.lquantizer.calibration.watch._MOST_BYTES", 1)
    assert batch_for(Interpreter(network()), records) == 1
