"""Search for the best networks of every size: single layers first, then whole candidates.

Each layer is measured alone under each option; the exact front of the sums and the uniform networks
begin an evolution on shortened fits; its front is fitted in full. Everything is kept in a storage,
so that the same search goes on where it ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from sys import intern
from typing import Any

import numpy as np

from luciole.interpreter.records import Track, untracked
from luciole.lquantizer.assignment.layer_format import Levels
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.search.additive import Sum, Table, bisected, corner, thinned, values_of
from luciole.lquantizer.search.device import NOWHERE, Devices
from luciole.lquantizer.search.evaluate import Alone, Stage
from luciole.lquantizer.search.goal import Budget, Goal
from luciole.lquantizer.search.networks import SEPARATOR, Found, Searched, candidate_of
from luciole.lquantizer.search.nsga2 import Nsga2, Objectives, undominated
from luciole.lquantizer.search.runners import Outcome, Runner, Task
from luciole.lquantizer.search.space import DYNAMIC, UNCHANGED, Candidate, Space, is_learned
from luciole.lquantizer.search.storage import Storage
from luciole.lquantizer.search.tasks import drive, evaluate, is_known, keep, tasks_of
from luciole.lquantizer.search.thinning import largest

_POINTS = 24
"""Of the additive front, where the evolution begins."""


@dataclass
class Search:
    """A search under way. ``say`` is told in a line how it goes, ``track`` shows long work."""

    space: Space
    goal: Goal
    storage: Storage
    float_bytes: int
    float_us: float
    seed: int = 0
    budget: Budget = field(default_factory=Budget)
    say: Callable[[str], None] = print
    track: Track = untracked
    devices: Devices = NOWHERE
    float_costs: Mapping[str, float] = field(default_factory=dict)

    def run(self, runner: Runner) -> Searched:
        """Measure, evolve, fit the front. An interrupt ends the evolution as its budget does.

        Raises LostError where the cluster is gone, QuantizeError where nothing can be evaluated.
        """
        self._begun = time.monotonic()
        self._measure(runner)
        self._alone = [
            replace(one, costs=self.devices.excess(one.layer, one.option))
            for one in self.storage.alone()
        ]
        self._table = Table.of(self.space, self._alone)
        self._ways = {(one.layer, one.option): intern(one.way) for one in self._alone}
        try:
            self._evolve(runner)
        except KeyboardInterrupt:
            self.say("interrupted: the files of the front are still made")
        evaluated = self._evaluated("shortened")
        if not evaluated:
            raise QuantizeError(next(iter(self.storage.errors()), "nothing was evaluated"))
        unreached = self._unreached()
        return replace(self._finished(runner, evaluated), unreached=unreached)

    def _finished(self, runner: Runner, evaluated: list[Found]) -> Searched:
        known = {one.candidate: one for one in evaluated}
        greedy = [known[c] for c in self._greedy() if c in known]
        self._fit(runner, self._chosen(evaluated))
        fitted = [one for one in self._evaluated("fitted") if self.goal.allows(one.bytes, one.us)]
        whole = {one.candidate: one for one in fitted}
        uniform = {name: whole[c] for name, c in self._uniform().items() if c in whole}
        failed = len(self.storage.in_state("shortened", "failed"))
        if not fitted:
            raise QuantizeError(_beyond(evaluated))
        front = self._thinned(self.front_of(fitted), self.budget.files, uniform.values())
        return Searched(evaluated, uniform, greedy, front, failed)

    # ------------------------------------------------------------------ layers alone
    def _measure(self, runner: Runner) -> None:
        known = {(one.layer, one.option) for one in self.storage.alone()}
        tasks = [task for task in tasks_of(self.space) if not is_known(task, known)]
        step = self.track("measuring layers", len(tasks))

        def ended(key: str, outcome: Outcome) -> None:
            if outcome.error is not None:
                raise QuantizeError(f"layer {key.split(SEPARATOR)[0]}: {outcome.error}")
            for row in outcome.result["alone"]:
                self.storage.add_alone(Alone(**row))
            step(1)

        named = {f"{task['layer']}{SEPARATOR}{task['options'][0]}": task for task in tasks}
        drive(runner, iter(named.items()), ended)

    # ------------------------------------------------------------------ evolution
    def _evolve(self, runner: Runner) -> None:
        """Give candidates until the budget ends; those that were under way come first."""
        evolution = Nsga2(self._choices(), self._start(), seed=self.seed, allowed=self._allowed)
        for one in self._evaluated("shortened"):
            self._add_parent(evolution, one)
        open_ = self.storage.in_state("shortened", "running")
        for candidate in (*open_, *self.storage.in_state("shortened", "failed")):
            evolution.give(candidate)
        progress = _Progress(self, evolution)
        candidates = self._candidates(evolution, open_)
        evaluate(self.storage, runner, "shortened", candidates, progress.ended, self._details)

    def _add_parent(self, evolution: Nsga2, one: Found) -> None:
        """Add a network to the parents, unless it does not keep to the bounds."""
        if self.goal.allows(one.bytes, one.us):
            evolution.tell(one.candidate, one.values(self.goal.objectives))
        else:
            evolution.give(one.candidate)

    def _candidates(self, evolution: Nsga2, open_: Sequence[Candidate]) -> Iterator[Candidate]:
        """Yield candidates to evaluate, as evaluations before them allow."""
        waiting, least = list(open_), max(len(self._first()), 1)
        count = len(self._evaluated("shortened")) + len(
            self.storage.in_state("shortened", "failed")
        )
        while not self._is_over(count, least):
            options = waiting.pop(0) if waiting else evolution.ask()
            if options is None:
                return
            count += 1
            yield tuple(map(str, options))

    def _is_over(self, count: int, least: int) -> bool:
        """Check whether the budget is spent; time alone leaves out none of the ``least`` first."""
        most, minutes = self.budget.evaluations, self.budget.minutes
        late = minutes is not None and time.monotonic() - self._begun > 60 * minutes
        return (late and count >= least) or (most is not None and count >= most)

    def _details(self, candidate: Candidate) -> Task:
        """Name the coding of each layer that a shortened fit takes."""
        chosen = self.space.by_layer(candidate)
        return {"ways": [self._ways[name, chosen[name]] for name in self.space.learned(candidate)]}

    def _choices(self) -> list[tuple[str, ...]]:
        return self._table.pruned(self.goal.objectives)

    def _start(self) -> list[Candidate]:
        """Begin with uniform networks, the additive front, and the greedy ones: from their ends
        inwards, so that wherever the budget ends all sizes were looked at.
        """
        sums = self._table.front(self.goal.objectives)
        front = [one for one in sums if self._fits(one) and set(one.candidate) != {UNCHANGED}]
        points = bisected(thinned(front, self.goal.objectives, _POINTS, self._whole))
        first = [one.candidate for one in (*self._first(), *points)]
        start = [*first, *self._uniform().values(), *self._greedy()]
        return [one for one in dict.fromkeys(start) if set(one) != {UNCHANGED}]

    def _first(self) -> list[Sum]:
        """Choose the uniform networks to begin with, those that promise something."""
        sums = [one for one in map(self._table.sum, self._uniform().values()) if self._fits(one)]
        values = np.array([values_of(one, self.goal.objectives) for one in sums])
        kept = [sums[place] for place in undominated(values)] if sums else []
        return bisected(sorted(kept, key=lambda one: -one.loss))

    def _unreached(self) -> int:
        """Count the first networks that the budget left out, and report them."""
        done = {candidate for candidate, _ in self.storage.found("shortened")}
        done |= set(self.storage.in_state("shortened", "failed"))
        start = self._start()
        left = [candidate for candidate in start if candidate not in done]
        if left:
            same = [name for name, one in self._uniform().items() if one in left]
            among = f", among them {', '.join(same)} everywhere" if same else ""
            verb, them = ("was", "it") if len(left) == 1 else ("were", "them")
            self.say(
                f"{len(left)} of the {len(start)} networks that a search begins with "
                f"{verb} not reached{among}: more evaluations or minutes go on with {them}"
            )
        return len(left)

    def _uniform(self) -> dict[str, Candidate]:
        """Name the networks with one option everywhere, and those with learned levels between ends
        of int8 weights.
        """
        options = dict.fromkeys(option for gene in self.space.genes for option in gene.options)
        candidates: dict[str, Candidate] = {}
        for option in options:
            ends = DYNAMIC if is_learned(option) and DYNAMIC in options else None
            candidate = self.space.uniform(option, ends)
            if option != UNCHANGED and candidate is not None:
                candidates[option] = candidate
        return candidates

    def _greedy(self) -> list[Candidate]:
        """Widen layer by layer, inputs as wide as weights, as ``auto_bits`` once did."""
        return greedy(self._table)

    def _allowed(self, candidate: tuple[Any, ...]) -> bool:
        changed = any(option != UNCHANGED for option in candidate)
        return changed and self._fits(self._table.sum(candidate))

    def _fits(self, one: Sum) -> bool:
        return self.goal.allows(self.float_bytes + one.bytes, self.float_us + one.us)

    # ------------------------------------------------------------------ the front in full
    def _evaluated(self, stage: Stage) -> list[Found]:
        """List the networks that were evaluated; times are sums of single layers'."""
        return [self.entered(*row) for row in self.storage.found(stage)]

    def entered(self, candidate: Candidate, figures: Mapping[str, Any]) -> Found:
        """Add a candidate's times, as sums of single layers', to its figures."""
        one = self._table.sum(candidate)
        costs = {name: all_ + one.costs[name] for name, all_ in self.float_costs.items()}
        return Found(candidate, us=self.float_us + one.us, costs=costs, **figures)

    def front_of(self, networks: Sequence[Found]) -> list[Found]:
        """Leave out networks that others dominate; from the smallest to the largest."""
        best = undominated(self._values(networks))
        return sorted((networks[i] for i in best), key=lambda one: one.bytes)

    def _chosen(self, evaluated: Sequence[Found]) -> list[Candidate]:
        """Choose the candidates to fit in full: twice as many as files, for a fit changes their
        order, and the uniform networks, so that no file is worse than one of them.
        """
        allowed = [one for one in evaluated if self.goal.allows(one.bytes, one.us)] or evaluated
        names = set(self._uniform().values())
        uniform = self.front_of([one for one in allowed if one.candidate in names])
        front = self._thinned(self.front_of(allowed), 2 * self.budget.files)
        return list(dict.fromkeys(one.candidate for one in (*front, *uniform)))

    def _thinned(
        self, front: Sequence[Found], count: int, uniform: Iterable[Found] = ()
    ) -> list[Found]:
        """Keep the ``count`` networks that dominate most of the box up to the float network, among
        them the most accurate one, and for each uniform network one that is as good.
        """
        names = self.goal.objectives
        points = np.array([values_of(one.sum, names) for one in front])
        losses = np.array([one.loss for one in front])
        needs = [losses == losses.min()]
        needs += [(points <= values_of(one.sum, names)).all(1) for one in uniform]
        kept = largest(points, corner(self._whole, names), count, needs)
        return [front[i] for i in kept]

    @property
    def _whole(self) -> Sum:
        return Sum((), 0.0, self.float_bytes, self.float_us, self.float_costs)

    def _values(self, networks: Sequence[Found]) -> Objectives:
        rows = [one.values(self.goal.objectives) for one in networks]
        return np.array(rows).reshape(len(rows), len(self.goal.objectives))

    def _fit(self, runner: Runner, chosen: Sequence[Candidate]) -> None:
        known = {candidate for candidate, _ in self.storage.found("fitted")}
        missing = [candidate for candidate in chosen if candidate not in known]
        step = self.track("fitting the front", len(missing))

        def ended(key: str, outcome: Outcome) -> None:
            keep(self.storage, "fitted", key, outcome)
            step(1)

        evaluate(self.storage, runner, "fitted", missing, ended)


@dataclass
class _Progress:
    """Reports evaluations as they end."""

    search: Search
    evolution: Nsga2
    begun: float = field(default_factory=time.monotonic)
    ended_now: int = 0

    def ended(self, key: str, outcome: Outcome) -> None:
        """Keep an evaluation, and tell the evolution of it."""
        search = self.search
        keep(search.storage, "shortened", key, outcome)
        self.ended_now += 1
        if outcome.error is None:
            search._add_parent(
                self.evolution, search.entered(candidate_of(key), outcome.result["figures"])
            )
        if self.ended_now % 20 == 0:
            rate = 60 * self.ended_now / (time.monotonic() - self.begun)
            count = len(self.evolution.known)
            search.say(f"{count} evaluated  front {len(self.evolution.front())}  {rate:.1f}/min")


def _beyond(evaluated: Sequence[Found]) -> str:
    """Write that bounds are too narrow, with the smallest and the fastest network."""
    size, us = min(one.bytes for one in evaluated), min(one.us for one in evaluated)
    fastest = f", the fastest {us:.0f} us" if us else ""
    return f"no network keeps to the bounds: the smallest one has {size:,} bytes{fastest}"


_TIED = tuple(str(Levels(bits, bits)) for bits in (1, 2, 3, 4))


def greedy(table: Table) -> list[Candidate]:
    """Widen layer by layer, each step the one that takes most loss away for each byte, with inputs
    as wide as weights and float ends: allocations from the smallest to the largest.
    """
    ladders = []
    for gene, row in zip(table.space.genes, table.rows, strict=True):
        learned = [] if gene.is_end else [option for option in _TIED if option in row]
        ladders.append(learned or [UNCHANGED if UNCHANGED in row else gene.options[-1]])
    place = [0] * len(ladders)
    candidates = [_at(ladders, place)]
    while gains := _gains(table, ladders, place):
        place[max(gains, key=gains.__getitem__)] += 1
        candidates.append(_at(ladders, place))
    return candidates[:: max(1, len(candidates) // 6)]


def _at(ladders: Sequence[Sequence[str]], place: Sequence[int]) -> Candidate:
    return tuple(ladder[at] for ladder, at in zip(ladders, place, strict=True))


def _gains(
    table: Table, ladders: Sequence[Sequence[str]], place: Sequence[int]
) -> dict[int, float]:
    """Compute for each gene the loss that its next step saves for each byte."""
    gains = {}
    for gene, (ladder, at) in enumerate(zip(ladders, place, strict=True)):
        if at + 1 < len(ladder):
            now, then = table.rows[gene][ladder[at]], table.rows[gene][ladder[at + 1]]
            gains[gene] = (now.loss - then.loss) / max(then.bytes - now.bytes, 1)
    return gains
