"""Sorting, crowding and hypervolume against pymoo's numbers (``golden/nsga2.json``, which ``python
-m tests.golden.nsga2`` makes), and the search itself on a front that is known.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from luciole.lquantizer.search.nsga2 import (
    Nsga2,
    best,
    crowding,
    fronts,
    hypervolume,
    hypervolumes,
    spread,
    undominated,
)

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "nsga2.json").read_text())


@pytest.mark.parametrize("case", GOLDEN)
def test_fronts_crowding_and_hypervolume_are_pymoos(case: dict[str, Any]) -> None:
    values = np.array(case["objectives"])
    assert [front.tolist() for front in fronts(values)] == case["fronts"]
    alone = [np.inf if c is None else c for c in case["crowding"]]
    np.testing.assert_allclose(crowding(values), alone, rtol=1e-12)
    corner = [0.9] * values.shape[1]
    assert hypervolume(values, corner) == pytest.approx(case["hypervolume"], rel=1e-12)


def test_the_best_are_whole_fronts_and_the_loneliest_of_the_last() -> None:
    values = np.array([(0, 4), (1, 3), (1.1, 2.9), (4, 0), (5, 5)], float)
    assert sorted(best(values, 5)) == [0, 1, 2, 3, 4]
    assert sorted(best(values, 3)) == [0, 2, 3]
    assert sorted(best(values, 2)) == [0, 3]


def test_a_front_is_thinned_where_it_is_crowded() -> None:
    near = [0.0, 1.0, 2.0, 2.01, 2.02, 2.03, 3.0, 4.0]
    values = np.array([(x, -x) for x in near])
    assert values[spread(values, 5), 0].tolist() == pytest.approx([0, 1, 2, 3, 4], abs=0.03)


def costs(candidate: tuple[Any, ...]) -> tuple[float, float]:
    return float(sum(candidate)), float(sum((9 - gene) ** 2 for gene in candidate))


def search(count: int, stop: int | None = None, **settings: Any) -> Nsga2:
    """Ask and tell so often, from the beginning or, from ``stop`` on, taken up again."""
    found = Nsga2([range(10)] * 6, [(g,) * 6 for g in range(10)], **settings)
    for number in range(count):
        if number == stop:
            known = found.known
            found = Nsga2([range(10)] * 6, [(g,) * 6 for g in range(10)], **settings)
            for one, values in known.items():
                found.tell(one, values)
        candidate = found.ask()
        assert candidate is not None
        found.tell(candidate, costs(candidate))
    return found


def test_the_search_finds_most_of_a_known_front() -> None:
    found = search(600)
    exact = [(g,) * k + (g + 1,) * (6 - k) for g in range(9) for k in range(1, 7)] + [(9,) * 6]
    reference = (60.0, 500.0)
    whole = hypervolume(np.array([costs(c) for c in exact]), reference)
    reached = hypervolume(np.array([found.known[c] for c in found.front()]), reference)
    assert 0.97 * whole < reached <= whole + 1e-9
    assert len(found.known) == 600, "no candidate is given twice"


def test_a_search_taken_up_again_goes_on_as_it_would_have() -> None:
    assert list(search(120, stop=57).known) == list(search(120).known)
    assert list(search(120, seed=1).known) != list(search(120).known)


def test_a_search_ends_where_nothing_is_left() -> None:
    found = Nsga2([(0, 1), (0, 1)], allowed=lambda genes: genes != (1, 1))
    given = [found.ask() for _ in range(4)]
    assert given[3] is None
    assert {(0, 0), (0, 1), (1, 0)} == set(given[:3])


def test_single_mutation_changes_one_gene_of_a_pool_of_one() -> None:
    found = Nsga2([range(100)] * 8, [(0,) * 8], mutation=1.0, single=True)
    found.tell((0,) * 8, (0.0, 0.0))
    for _ in range(20):
        candidate = found.ask()
        assert candidate is not None
        assert sum(gene != 0 for gene in candidate) == 1


@pytest.mark.parametrize("width", [2, 3])
def test_the_first_front_and_what_it_covers_grow_as_all_candidates_say(width: int) -> None:
    values = np.random.default_rng(width).integers(0, 12, (200, width)).astype(float)
    assert undominated(values).tolist() == fronts(values)[0].tolist()
    corner = [11.0] * width
    grown = hypervolumes(values[:60], corner)
    assert grown == pytest.approx([hypervolume(values[: n + 1], corner) for n in range(60)])


def test_the_front_that_is_kept_is_that_of_all_told() -> None:
    found = search(150)
    values = np.array(list(found.known.values()))
    names = list(found.known)
    assert set(found.front()) == {names[n] for n in undominated(values)}
