"""Give each layer 4 or 8 bit weights, 16 bit inputs or floats: as little as an accuracy allows.

Layers are lifted one after the other, from 4 bits on, in the order of what each alone loses at 4
bits for each byte that it would take more. What an allocation costs is judged on records that
nothing was learned from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from luciole.interpreter.records import Progress, Records, Track, untracked
from luciole.ir import Array, Graph, Model, Op
from luciole.ir.analysis.weights import has_weights, weight_constant
from luciole.lquantizer.assignment.layer_format import Integers, LayerFormat
from luciole.lquantizer.assignment.schemes import (
    BYTES,
    FLOAT,
    NIBBLES,
    SCHEMES,
    Chosen,
    UniformOptions,
    uniform_types,
)
from luciole.lquantizer.judging.budget import first_within
from luciole.lquantizer.judging.judge import Loss, enter_verdict
from luciole.lquantizer.judging.metric import Metric
from luciole.lquantizer.judging.records import Split
from luciole.lquantizer.network.result import Result
from luciole.lquantizer.search.sensitivity import Trials
from luciole.lquantizer.whole.integers import quantize_uniform

LADDER = (NIBBLES, BYTES, Integers(8, 16), FLOAT)
"""Formats of a layer, from the smallest to the largest."""
_DROP = 1.0
"""Points that are allowed unless it is said."""
_TRIES = 6
"""Whole quantizations at the most."""

Allocation = Mapping[str, LayerFormat]
"""A format for each layer, by its name."""


@dataclass(frozen=True)
class Candidate:
    """One layer: the noise that it alone makes with 4 bits, and how many weights it has."""

    noise: float
    weights: int


def quantize_mixed_bits(
    model: Model,
    records: Records,
    options: UniformOptions,
    track: Track | None = None,
    labels: Array | None = None,
    metric: Metric | None = None,
) -> Result:
    """Find the smallest allocation that loses at most ``options.target_drop`` in the unit of the
    ``Judge``, and quantize the network so; the given model stays as it is.

    Raises QuantizeError where there are too few records, and as ``quantize_uniform`` does.
    """
    split = Split.for_choices(records, labels)
    search = _Search.begin(model, split, options, track or untracked, metric)
    layers = [op.name for op in search.trials.work.graph.ops if has_weights(op)]
    if search.attempt(dict.fromkeys(layers, LADDER[0])) > search.target:
        search.lift()
    return search.finished()


@dataclass
class _Search:
    """A network, the records that teach and judge it, and the best allocation so far."""

    trials: Trials
    options: UniformOptions
    target: float
    track: Track
    last: tuple[Result, Loss] | None = None
    best: tuple[Result, Loss] | None = None
    candidates: dict[str, Candidate] = field(default_factory=dict)

    @classmethod
    def begin(
        cls,
        model: Model,
        split: Split,
        options: UniformOptions,
        track: Track,
        metric: Metric | None,
    ) -> _Search:
        """Prepare the network."""
        trials = Trials.begin(model, split, options, track, metric)
        plain = replace(options, scheme=str(BYTES), target_drop=None)
        target = _DROP if options.target_drop is None else options.target_drop
        return cls(trials, plain, target, track)

    def attempt(self, allocation: Allocation) -> float:
        """Quantize the network by an allocation, and return its loss."""

        def choices(graph: Graph) -> Mapping[Op, Chosen]:
            return around(graph, allocation)

        trials = self.trials
        result = quantize_uniform(
            trials.work, trials.records, self.options, self.track, choices, trials.known
        )
        lost = trials.judge.judge(result.model)
        self.last = result, lost
        if lost.drop <= self.target:
            self.best = self.last
        return lost.drop

    def lift(self) -> None:
        """Lift one layer after the other until no more than the target is lost. Networks put
        together say where to begin, networks learned as a whole decide: they make up for more.
        """
        self.trials.learn(SCHEMES[BYTES], self.track)
        self.candidates = self._measured()
        if not self.candidates:
            return
        steps = path(self.candidates)
        last = len(steps) - 1
        step = self.track("allocations", last.bit_length() + 1)
        start = first_within(partial(self._estimate, steps, step), len(steps), self.target, last)
        begin = max(1, last if start is None else start)
        first_within(lambda n: self.attempt(steps[n]), len(steps), self.target, begin, 0, _TRIES)

    def _measured(self) -> dict[str, Candidate]:
        """Measure the noise of each layer alone at 4 bits."""
        known = {name for name, _ in self.trials.known.integers}
        layers = [op for op in self.trials.work.graph.ops if op.name in known]
        step, candidates = self.track("measuring layers", len(layers)), {}
        for op in layers:
            alone = {op.name: SCHEMES[NIBBLES]}
            weights = weight_constant(op)
            size = 0 if weights is None else int(np.prod(weights.dims))
            noise = self.trials.judge.distance(self.trials.network(alone, alone)).noise
            candidates[op.name] = Candidate(noise, size)
            step(1)
        return candidates

    def _estimate(self, steps: Sequence[Allocation], progress: Progress, place: int) -> float:
        """Estimate the drop of one of the allocations, by a network put together."""
        chosen = around(self.trials.work.graph, steps[place])
        schemes = {op.name: types for op, types in uniform_types(chosen).items()}
        progress(1)
        return self.trials.judge.judge(self.trials.network(schemes, schemes)).drop

    def finished(self) -> Result:
        """Return the best network, with the figures that it was chosen by."""
        chosen = self.best or self.last
        assert chosen is not None, "something was tried"
        result, lost = chosen
        result.report.options = [
            {"layer": name, "option": str(NIBBLES), "bytes": one.weights // 2, "error": one.noise}
            for name, one in self.candidates.items()
        ]
        enter_verdict(result.report, self.trials.judge, lost, self.target)
        return result


def path(candidates: Mapping[str, Candidate]) -> list[Allocation]:
    """List allocations from the smallest on: each lifts one layer by one step of the ladder, the
    one that loses most for each of its weights first. One layer at least stays on integers.
    """
    order = sorted(candidates, key=lambda n: -candidates[n].noise / max(candidates[n].weights, 1))
    steps: list[dict[str, LayerFormat]] = [dict.fromkeys(candidates, NIBBLES)]
    for format in LADDER[1:]:
        steps += [steps[-1] | dict.fromkeys(order[:k], format) for k in range(1, len(order) + 1)]
    return list(steps[:-1])


def around(graph: Graph, layers: Allocation) -> dict[Op, LayerFormat]:
    """Choose for operators without weights the widest format in front of them."""
    formats: dict[Op, LayerFormat] = {}
    for op in graph.ops:
        makers = [v.producer.op for v in op.operands if v is not None and v.producer is not None]
        places = [LADDER.index(formats[maker]) for maker in makers if maker in formats]
        formats[op] = layers.get(op.name) or LADDER[max([1, *places])]
    return formats
