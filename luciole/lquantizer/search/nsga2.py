"""Search for a Pareto front by NSGA-II: non-dominated sorting, crowding distance, hypervolume.

Deb, Pratap, Agarwal, Meyarivan: A fast and elitist multiobjective genetic algorithm: NSGA-II, IEEE
Transactions on Evolutionary Computation 6(2), 2002. Here a child may be asked for at any time, of
whatever is known by then, so that no worker waits for the slowest of a generation.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Objectives = NDArray[np.float64]
"""Figures to minimise: [candidates, objectives]."""
Indices = NDArray[np.intp]
Genes = tuple[Hashable, ...]
_TRIES = 1000
"""Children that are made before chance alone makes the next candidate."""


def dominates(objectives: Objectives) -> NDArray[np.bool_]:
    """Check for each pair whether the first dominates the second: nowhere worse, somewhere better.

    ``objectives`` are [n, m], the result is [n, n].
    """
    one, other = objectives[:, None], objectives[None]
    return np.asarray((one <= other).all(2) & (one < other).any(2))


def fronts(objectives: Objectives) -> list[Indices]:
    """Sort candidates into fronts: indices of those that none dominates, then of those that only
    the first front dominates, and so on. ``objectives`` are [n, m].
    """
    above = dominates(objectives)
    left = np.ones(len(objectives), bool)
    sorted_fronts = []
    while left.any():
        now = np.flatnonzero(left & ~above[left].any(0))
        sorted_fronts.append(now)
        left[now] = False
    return sorted_fronts


def undominated(objectives: Objectives) -> Indices:
    """Find the first front alone, of any number of candidates [n, m]: who dominates another comes
    before it in order of the first objective, then of the second, and so on.
    """
    kept: list[int] = []
    best = np.empty_like(objectives)
    for index in np.lexsort(objectives.T[::-1]):
        one, rest = objectives[index], best[: len(kept)]
        if not ((rest <= one).all(1) & (rest < one).any(1)).any():
            best[len(kept)] = one
            kept.append(int(index))
    return np.sort(np.array(kept, np.intp))


def crowding(objectives: Objectives) -> NDArray[np.float64]:
    """Measure how alone each candidate [n, m] is: the sum over the objectives of the distance
    between its two neighbours as a share of the range; infinite at the ends.
    """
    distances = np.zeros(len(objectives))
    for column in objectives.T:
        order = np.argsort(column, kind="stable")
        values = column[order]
        span = float(values[-1] - values[0]) or 1.0
        distances[order[[0, -1]]] = np.inf
        distances[order[1:-1]] += (values[2:] - values[:-2]) / span
    return distances


def best(objectives: Objectives, count: int) -> Indices:
    """Choose ``count`` candidates [n, m]: front after front, of the last one the most isolated."""
    chosen: list[int] = []
    for front in fronts(objectives):
        room = count - len(chosen)
        if room <= 0:
            break
        order = np.argsort(-crowding(objectives[front]), kind="stable")
        chosen += (front if len(front) <= room else front[order[:room]]).tolist()
    return np.array(chosen, np.intp)


def spread(objectives: Objectives, count: int) -> Indices:
    """Thin a front [n, m] to ``count`` candidates: the most crowded one goes, again and again."""
    kept = np.arange(len(objectives))
    while len(kept) > count:
        kept = np.delete(kept, crowding(objectives[kept]).argmin())
    return kept


def hypervolume(objectives: Objectives, reference: Sequence[float]) -> float:
    """Measure the volume that candidates [n, m] dominate within a reference point [m]: the sum of
    slices along the last objective. Candidates beyond the reference count nothing.
    """
    corner = np.asarray(reference, np.float64)
    inside = objectives[(objectives < corner).all(1)]
    if not len(inside):
        return 0.0
    if len(corner) == 1:
        return float(corner[0] - inside.min())
    order = inside[np.argsort(inside[:, -1], kind="stable")]
    heights = np.diff(np.append(order[:, -1], corner[-1]))
    if len(corner) == 2:
        return float(heights @ (corner[0] - np.minimum.accumulate(order[:, 0])))
    slices = ((order[: i + 1, :-1], height) for i, height in enumerate(heights) if height > 0)
    return float(sum(height * hypervolume(rest, reference[:-1]) for rest, height in slices))


def hypervolumes(objectives: Objectives, reference: Sequence[float]) -> list[float]:
    """Measure the volume that the first candidate [n, m] dominates, the first two, and so on."""
    volumes, front = [0.0], objectives[:0]
    for one in objectives:
        if (front <= one).all(1).any():
            volumes.append(volumes[-1])
            continue
        front = np.concatenate([front[~(one <= front).all(1)], one[None]])
        volumes.append(hypervolume(front, reference))
    return volumes[1:]


def anything(genes: Genes) -> bool:
    """Allow every candidate."""
    return True


@dataclass
class Nsga2:
    """A search over tuples of genes: ``ask`` draws candidates, ``tell`` takes their objectives.

    ``choices`` says what each gene may be; the candidates of ``start`` come first. ``mutation`` is
    the chance of each gene to be drawn anew, None for one in the number of genes; with ``single``
    it is the chance of one gene. No candidate is given twice. Chance depends on the seed and on how
    many were given, so that a search which is taken up again goes on as it would have.
    """

    choices: Sequence[Sequence[Hashable]]
    start: Iterable[Genes] = ()
    parents: int = 24
    mutation: float | None = None
    single: bool = False
    seed: int = 0
    allowed: Callable[[Genes], bool] = anything
    known: dict[Genes, tuple[float, ...]] = field(default_factory=dict)
    _given: set[Genes] = field(default_factory=set)
    _pool: list[Genes] = field(default_factory=list)
    _front: list[Genes] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Queue the first candidates."""
        self._waiting = list(dict.fromkeys(self.start))

    def ask(self) -> Genes | None:
        """Give a candidate that was never given; None where none is found any more."""
        while self._waiting:
            candidate = self._waiting.pop(0)
            if candidate not in self._given:
                return self.give(candidate)
        random = np.random.default_rng((self.seed, len(self._given)))
        for attempt in range(2 * _TRIES):
            candidate = self._child(random) if attempt < _TRIES else self._any(random)
            if candidate not in self._given and self.allowed(candidate):
                return self.give(candidate)
        return None

    def give(self, candidate: Genes) -> Genes:
        """Note a candidate as given, which it may be from a run before."""
        self._given.add(candidate)
        return candidate

    def tell(self, candidate: Genes, objectives: Sequence[float]) -> None:
        """Learn a candidate's objectives; the best become the parents of the next."""
        self.known[self.give(candidate)] = tuple(objectives)
        self._front = _with(self._front, candidate, self.known)
        self._pool.append(candidate)
        if len(self._pool) > self.parents:
            values = np.array([self.known[c] for c in self._pool])
            self._pool = [self._pool[i] for i in best(values, self.parents)]

    def front(self) -> list[Genes]:
        """List the candidates that no other dominates."""
        return list(self._front)

    def _any(self, random: np.random.Generator) -> Genes:
        return tuple(one[int(random.integers(len(one)))] for one in self.choices)

    def _child(self, random: np.random.Generator) -> Genes:
        """Cross two parents gene by gene, and let chance change some."""
        if not self._pool:
            return self._any(random)
        one, two = (self._pool[i] for i in random.integers(0, len(self._pool), 2))
        take = random.random(len(one)) < 0.5
        drawn, anew = self._any(random), self._mutated(random, len(one))
        crossed = (a if t else b for a, b, t in zip(one, two, take, strict=True))
        return tuple(d if n else c for c, d, n in zip(crossed, drawn, anew, strict=True))

    def _mutated(self, random: np.random.Generator, count: int) -> NDArray[np.bool_]:
        """Draw the genes that change: [count]."""
        chance = 1 / count if self.mutation is None else self.mutation
        if not self.single:
            return np.asarray(random.random(count) < chance)
        changed = np.zeros(count, bool)
        changed[int(random.integers(count))] = random.random() < chance
        return changed


def _with(
    front: Sequence[Genes], candidate: Genes, known: Mapping[Genes, Sequence[float]]
) -> list[Genes]:
    """Enter a candidate in a front, unless one of it dominates it."""
    rest, one = [other for other in front if other != candidate], np.array(known[candidate])
    values = np.array([known[other] for other in rest]).reshape(-1, len(one))
    if ((values <= one).all(1) & (values < one).any(1)).any():
        return rest
    stays = np.flatnonzero(~((one <= values).all(1) & (one < values).any(1)))
    return [*(rest[n] for n in stays), candidate]
