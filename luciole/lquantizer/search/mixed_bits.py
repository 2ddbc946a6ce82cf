"""Give each layer 4 or 8 bit weights, 16 bit inputs or floats: as little as an accuracy allows.

Layers are lifted one after the other, from 4 bits on, in the order of what each alone loses at 4
bits for each byte that it would take more. What an allocation costs is judged on records that
nothing was learned from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from luciole.interpreter.answers import Reference, answers_of, is_probability
from luciole.interpreter.records import Records, Track, first_output, untracked
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
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.network.result import Result
from luciole.lquantizer.search.sensitivity import Trials, loss
from luciole.lquantizer.uniform.quantize import quantize_uniform

LADDER = (NIBBLES, BYTES, Integers(8, 16), FLOAT)
"""What a layer may be, from the least to the most."""
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
    model: Model, records: Records, options: UniformOptions, track: Track | None = None
) -> Result:
    """Find the smallest allocation that costs at most ``options.target_drop`` points of accuracy,
    and quantize the network so; the given model stays as it is. Every other record judges.

    Without labels the float network's own probabilities say what an answer is worth: changing a
    sure one costs about a record, changing one between two equal ones nothing. A network that is
    too sure of itself makes the estimate larger than what is lost. Raises QuantizeError where there
    are too few records or answers, and as ``quantize_uniform`` does.
    """
    judges = {name: array[1::2] for name, array in records.items()}
    kept = {name: array[::2] for name, array in records.items()}
    if not all(len(array) for array in judges.values()):
        raise QuantizeError("a target drop needs at least 2 records: every other one judges")
    search = _Search.begin(model, kept, judges, options, track or untracked)
    layers = [op.name for op in search.trials.work.graph.ops if has_weights(op)]
    lost = search.attempt(dict.fromkeys(layers, LADDER[0]))
    if lost > search.target:
        search.lift()
    return search.finished()


@dataclass
class _Search:
    """A network, what it was learned from, what it answers, and the best that was found so far."""

    trials: Trials
    records: Records
    options: UniformOptions
    reference: Reference
    target: float
    track: Track
    result: Result | None = None
    lost: float = np.inf
    candidates: dict[str, Candidate] = field(default_factory=dict)

    @classmethod
    def begin(
        cls, model: Model, records: Records, judges: Records, options: UniformOptions, track: Track
    ) -> _Search:
        """Prepare the network. Raises QuantizeError where it is no classifier."""
        trials = Trials.begin(model, records, options, judges, track)
        reference = trials.reference()
        if not reference.has_classes:
            raise QuantizeError("a target drop needs a network whose first output scores classes")
        how = replace(options, scheme=str(BYTES), target_drop=None)
        target = _DROP if options.target_drop is None else options.target_drop
        return cls(trials, records, how, reference, target, track)

    def attempt(self, allocation: Allocation) -> float:
        """Quantize the network so, and say what that costs."""

        def choices(graph: Graph) -> Mapping[Op, Chosen]:
            return around(graph, allocation)

        work, known = self.trials.work, self.trials.known
        how = (self.options, self.track, choices, known)
        self.result = quantize_uniform(work, self.records, *how)
        numbers = first_output(self.result.model, self.trials.judges)
        self.lost = drop(self.reference.numbers, numbers)
        agree = loss(self.reference, numbers).agree or 0.0
        self.result.report.judged = {
            "drop": self.lost,
            "agree": agree,
            "records": len(self.reference.numbers),
        }
        return self.lost

    def lift(self) -> None:
        """Lift one layer after the other until that costs no more than the target. Networks put
        together say where to begin, networks learned as a whole decide: they make up for more.
        """
        self.trials.learn(self.records, SCHEMES[BYTES], self.track)
        self.candidates = self._measured()
        if not self.candidates:
            return
        steps = path(self.candidates)
        below, place, best = 0, max(1, self._place(steps)), None
        above = len(steps)
        for tried in range(_TRIES):
            if self.attempt(steps[place]) <= self.target:
                best, above = (self.result, self.lost), place
            else:
                below = place
            if above - below <= 1 or below == len(steps) - 1:
                break
            further = min(place + 2**tried, len(steps) - 1)
            place = (below + above) // 2 if best is not None else further
        self.result, self.lost = best or (self.result, self.lost)

    def _measured(self) -> dict[str, Candidate]:
        """Measure what each layer alone loses at 4 bits."""
        known = {name for name, _ in self.trials.known.integers}
        layers = [op for op in self.trials.work.graph.ops if op.name in known]
        step, found = self.track("measuring layers", len(layers)), {}
        for op in layers:
            alone = {op.name: SCHEMES[NIBBLES]}
            weights = weight_constant(op)
            size = 0 if weights is None else int(np.prod(weights.dims))
            noise = loss(self.reference, self.trials.output(alone, alone)).noise
            found[op.name] = Candidate(noise, size)
            step(1)
        return found

    def _place(self, steps: Sequence[Allocation]) -> int:
        """Find the first step that costs no more than the target, by networks put together."""
        low, high = 0, len(steps) - 1
        step = self.track("allocations", high.bit_length())
        while low < high:
            middle = (low + high) // 2
            chosen = around(self.trials.work.graph, steps[middle])
            schemes = {op.name: types for op, types in uniform_types(chosen).items()}
            lost = drop(self.reference.numbers, self.trials.output(schemes, schemes))
            if lost <= self.target:
                high = middle
            else:
                low = middle + 1
            step(1)
        return low

    def finished(self) -> Result:
        """Return what was found last, with what it was chosen by."""
        assert self.result is not None, "something was tried"
        report = self.result.report
        report.options = [
            {"layer": name, "option": str(NIBBLES), "bytes": one.weights // 2, "error": one.noise}
            for name, one in self.candidates.items()
        ]
        if self.lost > self.target:
            report.warnings.append(
                f"{self.lost:.2f} points are lost on records held back, {self.target:g} were wanted"
            )
        return self.result


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
    """Give operators without weights the most that is in front of them."""
    found: dict[Op, LayerFormat] = {}
    for op in graph.ops:
        makers = [v.producer.op for v in op.operands if v is not None and v.producer is not None]
        places = [LADDER.index(found[maker]) for maker in makers if maker in found]
        found[op] = layers.get(op.name) or LADDER[max([1, *places])]
    return found


def drop(reference: Array, numbers: Array) -> float:
    """Estimate the points of accuracy that are lost where one network's scores [records, ...,
    classes] replace another's, if the probabilities of the latter are right.
    """
    likely = reference
    if not is_probability(reference):
        powers = np.exp(reference - reference.max(-1, keepdims=True))
        likely = powers / powers.sum(-1, keepdims=True)
    rows = likely.reshape(-1, likely.shape[-1])
    places = np.arange(len(rows))
    own, other = answers_of(reference).reshape(-1), answers_of(numbers).reshape(-1)
    return 100 * float((rows[places, own] - rows[places, other]).mean())
