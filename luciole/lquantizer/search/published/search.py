"""The published search under way: generation after generation, then the front in full."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from luciole.interpreter.records import Track
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.search.additive import values_of
from luciole.lquantizer.search.networks import Found, Searched
from luciole.lquantizer.search.nsga2 import fronts, spread
from luciole.lquantizer.search.published.evaluate import FINAL, PARTIAL
from luciole.lquantizer.search.published.evolution import evolve
from luciole.lquantizer.search.published.genes import WIDTHS, uniform
from luciole.lquantizer.search.published.options import SeedOptions
from luciole.lquantizer.search.published.size import objectives_of
from luciole.lquantizer.search.runners import Outcome, Runner
from luciole.lquantizer.search.space import Candidate, Space
from luciole.lquantizer.search.storage import Storage
from luciole.lquantizer.search.tasks import evaluate, keep

Objectives = tuple[float, ...]


@dataclass
class SeedSearch:
    """A published search; what the storage has is not evaluated again."""

    space: Space
    options: SeedOptions
    storage: Storage
    runner: Runner
    say: Callable[[str], None]
    track: Track

    def run(self) -> Searched:
        """Evolve, and train the front in full. An interrupt ends the evolution alone.

        Raises QuantizeError where nothing can be evaluated.
        """
        start = list(dict.fromkeys(uniform(self.space, bits) for bits in WIDTHS))
        options = self.options
        try:
            evolve(
                start,
                self.space.choices,
                self._evaluate,
                options.generations,
                options.seed,
                options.parents,
                options.offspring,
            )
        except KeyboardInterrupt:
            self.say("interrupted: the files of the front are still made")
        evaluated = self._found(PARTIAL)
        if not evaluated:
            raise QuantizeError(next(iter(self.storage.errors()), "nothing was evaluated"))
        known = {one.candidate: one for one in evaluated}
        named = {f"{bits} bits": uniform(self.space, bits) for bits in WIDTHS}
        final = self._final(known, list(named.values()))
        same = {name: final[one] for name, one in named.items() if one in final}
        failed = len(self.storage.in_state(PARTIAL, "failed"))
        return Searched(evaluated, same, [], self._thinned(list(final.values())), failed)

    def _evaluate(self, candidates: Sequence[Candidate]) -> dict[Candidate, Objectives]:
        """Train candidates a little, all of a generation at once."""
        begun = time.monotonic()
        self._evaluate_missing(PARTIAL, candidates)
        known = {one.candidate: one for one in self._found(PARTIAL)}
        evaluated = {one: known[one] for one in candidates if one in known}
        minutes = (time.monotonic() - begun) / 60
        self.say(
            f"{len(known)} evaluated  front {len(_front(list(known.values())))}  "
            f"{minutes:.1f} min for {len(evaluated)}"
        )
        return {one: _values(result) for one, result in evaluated.items()}

    def _evaluate_missing(self, stage: str, candidates: Sequence[Candidate]) -> None:
        """Evaluate the candidates that the storage does not know yet."""
        known = {candidate for candidate, _ in self.storage.found(stage)}
        known |= set(self.storage.in_state(stage, "failed"))
        missing = [candidate for candidate in candidates if candidate not in known]
        step = self.track(f"{stage} training", len(missing))

        def ended(key: str, outcome: Outcome) -> None:
            keep(self.storage, stage, key, outcome)
            step(1)

        evaluate(self.storage, self.runner, stage, missing, ended)

    def _found(self, stage: str) -> list[Found]:
        return [Found(one, us=0.0, **figures) for one, figures in self.storage.found(stage)]

    def _final(
        self, known: dict[Candidate, Found], same: Sequence[Candidate]
    ) -> dict[Candidate, Found]:
        """Train the front in full, and the uniform candidates that it is compared with."""
        chosen = [one.candidate for one in self._thinned(list(known.values()))]
        chosen += [one for one in dict.fromkeys(same) if one in known and one not in chosen]
        self._evaluate_missing(FINAL, chosen)
        done = [one for one in self._found(FINAL) if one.candidate in chosen]
        return {one.candidate: replace(one, before=known[one.candidate]) for one in done}

    def _thinned(self, evaluated: Sequence[Found]) -> list[Found]:
        """Leave out networks that others beat, and of the rest the most crowded ones."""
        front = _front(evaluated)
        kept = spread(np.array([_values(one) for one in front]), self.options.files)
        return [front[place] for place in kept]


def _values(one: Found) -> Objectives:
    """Return the objectives: the loss, a file's bytes, and bit operations where they count."""
    return values_of(one.sum, objectives_of(one.costs))


def _front(evaluated: Sequence[Found]) -> list[Found]:
    if not evaluated:
        return []
    values = np.array([_values(one) for one in evaluated])
    return sorted((evaluated[place] for place in fronts(values)[0]), key=lambda one: one.bytes)
