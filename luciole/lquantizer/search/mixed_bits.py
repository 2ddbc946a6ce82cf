"""Give each layer weights of 1 to 8 bits, 16 bit inputs or floats: as little as an accuracy allows.

Layers are lowered one after the other from 8 bits on, those first that alone lose least for each
byte they save, and lifted above 8 in the order of what each loses at 4 bits. What an allocation
costs is judged on records that nothing was learned from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from luciole.interpreter.records import Progress, Records, Track, untracked
from luciole.ir import Array, Graph, Model, Op
from luciole.ir.analysis.weights import has_weights
from luciole.lquantizer.assignment.choices import weight_bytes
from luciole.lquantizer.assignment.layer_format import MOST_LEARNED, Integers, LayerFormat
from luciole.lquantizer.assignment.schemes import (
    BYTES,
    FLOAT,
    NIBBLES,
    SCHEMES,
    Chosen,
    Scheme,
    UniformOptions,
    uniform_types,
)
from luciole.lquantizer.judging.budget import first_within
from luciole.lquantizer.judging.judge import Loss, enter_verdict
from luciole.lquantizer.judging.metric import Metric
from luciole.lquantizer.judging.records import Split
from luciole.lquantizer.network.places import integers_of
from luciole.lquantizer.network.result import Result
from luciole.lquantizer.search.sensitivity import Trials
from luciole.lquantizer.whole.integers import quantize_uniform

_FEW = tuple(Integers(bits, 8) for bits in range(1, MOST_LEARNED + 1))
"""Formats of learned levels, which luciole alone reads."""
_ABOVE: tuple[LayerFormat, ...] = (Integers(8, 16), FLOAT)
LADDER: tuple[LayerFormat, ...] = (*_FEW, NIBBLES, BYTES, *_ABOVE)
"""Formats of a layer, from the smallest to the largest."""
_DROP = 1.0
"""Points that are allowed unless it is said."""
_TRIES = 6
"""Whole quantizations at the most."""

Allocation = Mapping[str, LayerFormat]
"""A format for each layer, by its name."""


@dataclass(frozen=True)
class Candidate:
    """One layer under a format: the noise that it alone makes, and the bytes of its weights."""

    noise: float
    bytes: float


Measured = Mapping[str, Mapping[LayerFormat, Candidate]]
"""What each layer does under the formats that it may have, by its name."""


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
    fits = search.attempt(dict.fromkeys(layers, NIBBLES)) <= search.target
    fewer = _FEW[options.least_bits - 1 :]
    if fewer or not fits:
        search.choose(fewer, least=fits)
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
    measured: dict[str, dict[LayerFormat, Candidate]] = field(default_factory=dict)

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
        plain = replace(options, scheme=str(BYTES), target_drop=None, least_bits=1)
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

    def choose(self, fewer: Sequence[LayerFormat], *, least: bool) -> None:
        """Find the smallest allocation that loses no more than the target, of formats of ``fewer``
        than 4 bits, too; only among those smaller than 4 bits everywhere where these are the
        ``least`` that is known to do. Networks put together say where to begin, networks learned as
        a whole decide: they make up for more.
        """
        for format in (*fewer, BYTES):
            self.trials.learn(SCHEMES[format], self.track)
        self._measure([*fewer, NIBBLES, BYTES])
        steps = path(self.measured, least=least)
        if not steps:
            return
        last = len(steps) - 1
        progress = self.track("allocations", last.bit_length() + 1)
        estimate = partial(self._estimate, steps, progress)
        start = first_within(estimate, len(steps), self.target, last)
        begin = last if start is None else start
        first_within(lambda n: self.attempt(steps[n]), len(steps), self.target, begin, tries=_TRIES)

    def _measure(self, formats: Sequence[LayerFormat]) -> None:
        """Measure the noise of each layer alone under the formats that it has."""
        known = {name for name, _ in self.trials.known.integers}
        layers = [op for op in self.trials.work.graph.ops if op.name in known]
        step = self.track("measuring layers", len(layers))
        for op in layers:
            possible = dict(self._possible(op, formats))
            if {NIBBLES, BYTES} <= possible.keys():  # others have what those around them have
                self.measured[op.name] = {
                    format: Candidate(self._noise(op, SCHEMES[format]), weight_bytes(op, bits))
                    for format, bits in possible.items()
                }
            step(1)

    def _possible(
        self, op: Op, formats: Sequence[LayerFormat]
    ) -> Iterator[tuple[LayerFormat, int]]:
        """Yield the formats that a layer has integers in, and the bits of a weight."""
        for format in formats:
            types = integers_of({op: SCHEMES[format]}).get(op)
            if types and (op.name, types.weight_bits) in self.trials.known.integers:
                yield format, types.weight_bits

    def _noise(self, op: Op, types: Scheme) -> float:
        alone = {op.name: types}
        return self.trials.judge.distance(self.trials.network(alone, alone)).noise

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
            {"layer": name, "option": str(format), "bytes": round(one.bytes), "error": one.noise}
            for name, by in self.measured.items()
            for format, one in by.items()
        ]
        enter_verdict(result.report, self.trials.judge, lost, self.target)
        return result


def path(measured: Measured, *, least: bool = False) -> list[Allocation]:
    """List allocations from the smallest to the largest: each differs from the next one by the step
    of a layer that saves most bytes for the noise that it adds, from 8 bits down; above that by 16
    bit inputs and at last floats, for the layer first that loses most for each byte at 4 bits. One
    layer at least stays on integers. With ``least`` those smaller than 4 bits everywhere.
    """
    steps: list[dict[str, LayerFormat]] = [dict.fromkeys(measured, BYTES)]
    while prices := dict(_prices(measured, steps[-1])):
        steps.append(steps[-1] | dict([min(prices, key=prices.__getitem__)]))
    steps.reverse()
    if least:
        most = _bytes(measured, dict.fromkeys(measured, NIBBLES))
        return [step for step in steps if _bytes(measured, step) < most]
    nibbles = {name: by[NIBBLES] for name, by in measured.items()}
    order = sorted(nibbles, key=lambda n: -nibbles[n].noise / max(nibbles[n].bytes, 1))
    for format in _ABOVE:
        steps += [steps[-1] | dict.fromkeys(order[:k], format) for k in range(1, len(order) + 1)]
    return list(steps[:-1])


def _bytes(measured: Measured, allocation: Allocation) -> float:
    return sum(by[allocation[name]].bytes for name, by in measured.items())


def _prices(measured: Measured, now: Allocation) -> Iterator[tuple[tuple[str, LayerFormat], float]]:
    """Yield the layers that may take fewer bytes, with the format, and noise for each byte less."""
    for name, by in measured.items():
        present = by[now[name]]
        for format, one in by.items():
            if one.bytes < present.bytes:
                yield (name, format), (one.noise - present.noise) / (present.bytes - one.bytes)


def around(graph: Graph, layers: Allocation) -> dict[Op, LayerFormat]:
    """Choose for operators without weights the widest format in front of them."""
    formats: dict[Op, LayerFormat] = {}
    for op in graph.ops:
        makers = [v.producer.op for v in op.operands if v is not None and v.producer is not None]
        places = [LADDER.index(formats[maker]) for maker in makers if maker in formats]
        formats[op] = layers.get(op.name) or LADDER[max([LADDER.index(BYTES), *places])]
    return formats
