"""Thinning fronts: what is kept dominates nearly what the best choice does, and what is needed."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from luciole.lquantizer.search.nsga2 import Objectives, hypervolume, spread, undominated
from luciole.lquantizer.search.thinning import largest


def front(seed: int, count: int, width: int, bend: float) -> Objectives:
    """Draw points of which none dominates another, within 0 and 1: bent towards the origin by an
    exponent below 1, away from it by one above.
    """
    drawn = np.random.default_rng(seed).random((count, width))
    return np.asarray(drawn / (drawn**bend).sum(1, keepdims=True) ** (1 / bend))


def files(seed: int, count: int) -> Objectives:
    """Draw what a search finds: losses that fall from 1 to 1e-5 while bytes grow tenfold."""
    random = np.random.default_rng(seed)
    sizes = np.sort(30_000 * 10 ** random.random(count))
    return np.stack([np.sort(10 ** (-5 * random.random(count)))[::-1], sizes], 1)


@pytest.mark.parametrize("bend", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("width", [2, 3, 4])
def test_what_is_kept_dominates_nearly_what_the_best_choice_does(width: int, bend: float) -> None:
    for seed in range(2):
        values, corner = front(seed, 11, width, bend), [1.1] * width
        every = [hypervolume(values[list(some)], corner) for some in combinations(range(11), 4)]
        kept = hypervolume(values[largest(values, corner, 4)], corner)
        assert 0.985 * max(every) < kept <= max(every) + 1e-12


def test_files_that_gain_almost_nothing_go_before_small_ones() -> None:
    for seed in range(10):
        values, corner = files(seed, 40), (1.0, 320_000.0)
        crowded = spread(np.log(values + np.array([1e-3, 0])), 12)
        lost = [
            hypervolume(values, corner) - hypervolume(values[kept], corner)
            for kept in (crowded, largest(values, corner, 12))
        ]
        assert lost[1] < 0.6 * lost[0]


def test_of_three_objectives_more_is_kept_than_where_crowded_ones_go() -> None:
    for seed in range(3):
        values, corner = front(seed, 60, 3, 2.0), [1.1] * 3
        kept = [
            hypervolume(values[one], corner)
            for one in (spread(values, 10), largest(values, corner, 10))
        ]
        assert kept[1] > 1.01 * kept[0]


@pytest.mark.parametrize("count", [1, 3, 12, 39, 40, 50])
def test_as_many_are_kept_as_are_wanted(count: int) -> None:
    values = files(3, 40)
    values[:9, 0] += 2  # beyond the reference, where they dominate nothing
    values[20] = values[21]
    kept = largest(values, (1.0, 320_000.0), count)
    assert len(set(kept)) == min(count, 40)
    if count < 30:
        assert kept.min() >= 9


def test_one_of_those_who_meet_a_need_stays() -> None:
    values, corner = files(1, 40), (1.0, 320_000.0)
    free = largest(values, corner, 12)
    other = np.setdiff1d(np.arange(40), free)
    needs = [np.arange(40) == 39, np.isin(np.arange(40), other[:3]), np.zeros(40, bool)]
    kept = largest(values, corner, 12, needs)
    assert 39 in kept
    assert np.isin(kept, other[:3]).sum() == 1
    assert len(kept) == 12


def test_the_first_need_is_met_to_the_end() -> None:
    values = files(1, 40)
    needs = [np.arange(40) == n for n in (39, *range(6))]
    assert largest(values, (1.0, 320_000.0), 1, needs).tolist() == [39]
    assert 39 in largest(values, (1.0, 320_000.0), 3, needs)


def test_a_long_front_is_thinned_to_what_is_wanted_and_needed() -> None:
    values = front(0, 800, 3, 2.0)
    assert len(undominated(values)) == 800
    crowded = int(np.setdiff1d(np.arange(800), spread(values, 100))[0])
    kept = largest(values, [1.1] * 3, 8, [np.arange(800) == crowded])
    assert len(kept) == 8
    assert crowded in kept
