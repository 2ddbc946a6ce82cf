"""The search under a budget: the first step that keeps to a target, and parts taken away."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from luciole.lquantizer.judging.budget import first_within, taken_away


def counted(costs: list[float], tried: list[int]) -> Callable[[int], float]:
    def cost(place: int) -> float:
        tried.append(place)
        return costs[place]

    return cost


@pytest.mark.parametrize("steps", [1, 2, 3, 10, 24])
@pytest.mark.parametrize("from_the_end", [True, False])
def test_it_finds_the_first_step_within_the_target(steps: int, from_the_end: bool) -> None:
    start = steps - 1 if from_the_end else 0
    for first in range(steps):
        tried: list[int] = []
        costs = [10.0] * first + [1.0] * (steps - first)
        assert first_within(counted(costs, tried), steps, 1.0, start) == first
        assert len(tried) == len(set(tried)) <= 2 * steps.bit_length() + 2


def test_nothing_is_found_where_all_cost_too_much() -> None:
    tried: list[int] = []
    assert first_within(counted([3.0] * 8, tried), 8, 1.0, 7) is None
    assert tried == [7]
    assert first_within(counted([3.0] * 8, tried), 8, 1.0, 1, 0) is None


def test_the_gap_behind_a_start_doubles() -> None:
    tried: list[int] = []
    costs = [9.0] * 11 + [0.0] * 9
    assert first_within(counted(costs, tried), 20, 1.0, 1, 0) == 11
    assert tried[:5] == [1, 2, 4, 8, 16]


def test_tries_are_bounded() -> None:
    tried: list[int] = []
    costs = [9.0] * 30 + [0.0] * 70
    found = first_within(counted(costs, tried), 100, 1.0, 99, tries=3)
    assert len(tried) == 3
    assert found == min(place for place in tried if costs[place] == 0)


def test_taking_away_ends_behind_the_first_that_costs_too_much() -> None:
    costs = {5: 0.1, 4: 0.2, 3: 1.5, 2: 0.0}
    assert taken_away(costs, costs.__getitem__, 1.0) == [(5, 0.1), (4, 0.2), (3, 1.5)]
    assert taken_away([], costs.__getitem__, 1.0) == []
