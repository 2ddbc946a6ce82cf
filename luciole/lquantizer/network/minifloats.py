"""Choose which minifloats the tensors of a network have: bits for a part of the network, powers of
two for a tensor. Where tensors have these, channels are rescaled: what is far below a tensor's
largest number becomes subnormal, or 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from luciole.interpreter import Interpreter
from luciole.interpreter.records import Records, Track, batch_size
from luciole.ir import Array, Graph, Model, Op, TensorType, Value
from luciole.ir.analysis.endless import bounded
from luciole.ir.analysis.floats import is_float
from luciole.ir.analysis.weights import has_weights, is_layer
from luciole.ir.minifloat import MOST_SHIFT, Minifloat
from luciole.lquantizer.calibration.seen import Seen, seen
from luciole.lquantizer.network.poles import kept_exact
from luciole.lquantizer.network.rescale import (
    RULES,
    Floats,
    Pair,
    factors_of,
    judging_records,
    pairs_of,
    rescale,
)
from luciole.lquantizer.network.two_layers import Rounding
from luciole.lquantizer.rewrite.minifloat import is_constant, multiplied

_LOWER = 3
"""Powers of two that are tried below the one that holds a tensor's largest number."""

Spread = tuple[Array, Array]
"""Numbers, and how often each was found."""


def shifted(numbers: Minifloat, spread: Spread) -> Minifloat:
    """Choose the power of two that rounds numbers with the least squared error."""
    x, counts = spread
    peak = float(np.abs(x).max(initial=0.0))
    if peak == 0.0:
        return numbers
    needed = int(np.ceil(np.log2(peak / numbers.largest)))
    shifts = np.clip(np.arange(needed, needed - _LOWER, -1), -MOST_SHIFT, MOST_SHIFT)
    possible = [replace(numbers, shift=int(shift)) for shift in dict.fromkeys(shifts.tolist())]
    return min(possible, key=lambda f: _error(f, x, counts))


def _error(numbers: Minifloat, x: Array, counts: Array) -> float:
    return float(np.square(numbers.round(x) - x, dtype=np.float64) @ counts)


def tensors_of(graph: Graph, layers_only: bool) -> list[Value]:
    """List the tensors that become minifloats: constants but biases, inputs, and all results that
    are computed; with ``layers_only`` just what layers multiply with each other. Those that would
    take an operator to its pole stay as they are.
    """
    if layers_only:
        listed = [v for op in graph.ops if is_layer(op) for v in (*_computed(op), *multiplied(op))]
    else:
        made = [v for op in graph.ops if not op.reshapes for v in op.results]
        listed = [v for op in graph.ops for v in multiplied(op)] + [*graph.inputs, *made]
    exact = kept_exact(graph)
    return [v for v in dict.fromkeys(listed) if (is_float(v) or is_constant(v)) and v not in exact]


def _computed(op: Op) -> list[Value]:
    """List the operands of an operator that are computed."""
    return [v for v in op.operands if v is not None and not v.is_constant]


@dataclass(eq=False)
class Part:
    """A layer and the tensors between it and the next one, all of the same bits."""

    name: str
    values: list[Value]

    @property
    def elements(self) -> int:
        """Elements of its constants."""
        return sum(v.data.size for v in self.values if v.data is not None)


def spreads(
    model: Model, parts: Sequence[Part], records: Records, track: Track
) -> dict[Value, Spread]:
    """Collect the numbers of all tensors that get minifloats, of computed ones on all records."""
    batch, count = batch_size(Interpreter(model), records), len(next(iter(records.values())))
    values = [v for part in parts for v in part.values]
    constants = {v: bounded(data) for v in values if (data := v.data) is not None}
    made = [v for v in values if v not in constants]
    watched = seen(model, made, records, batch, track("ranges", count))
    computed = {value: _spread(statistics) for value, statistics in watched.items()}
    return computed | {v: (x, np.ones(x.size)) for v, x in constants.items()}


def _spread(seen: Seen) -> Spread:
    """Return the histogram, and where there are masked elements the number that stands for them."""
    middles, counts = seen.histogram()
    floor = seen.floor(TensorType.INT16)
    return (
        (middles, counts)
        if floor == np.inf
        else (np.append(middles, floor), np.append(counts, 1.0))
    )


def parts_of(graph: Graph, layers_only: bool) -> list[Part]:
    """Divide the tensors of a network that get minifloats among its layers, in execution order;
    what comes before the first layer is the first one's.
    """
    chosen = set(tensors_of(graph, layers_only))
    parts = [Part("", [v for v in graph.inputs if v in chosen])]
    taken = set(parts[0].values)
    for op in graph.ops:
        if has_weights(op) and any(v is not None and v.is_constant for v in op.operands):
            _begin(parts, op)
        own = [v for v in (*op.operands, *op.results) if v in chosen and v not in taken]
        parts[-1].values += [v for v in own if v is not None]
        taken.update(parts[-1].values)
    return parts


def _begin(parts: list[Part], op: Op) -> None:
    """Begin a layer's part; what there is before the first layer belongs to that."""
    if parts[-1].name:
        parts.append(Part(op.name, []))
    parts[-1].name = op.name


@dataclass(frozen=True, eq=False)
class Chosen:
    """Bits of every part, and the numbers that powers of two follow from, if there are any."""

    parts: Sequence[Part]
    bits: Mapping[Part, Minifloat]
    spreads: Mapping[Value, Spread] | None

    def by_value(self) -> dict[Value, Minifloat]:
        """Give every tensor its numbers."""
        plain = {v: self.bits[part] for part in self.parts for v in part.values}
        if self.spreads is None:
            return plain
        return {v: shifted(numbers, self.spreads[v]) for v, numbers in plain.items()}


def same_bits(
    parts: Sequence[Part], spreads: Mapping[Value, Spread] | None, numbers: Minifloat
) -> Chosen:
    """Give all parts the same bits."""
    return Chosen(parts, dict.fromkeys(parts, numbers), spreads)


def even_minifloats(work: Model, records: Records, numbers: Minifloat) -> dict[str, Array]:
    """Rescale the channels between two layers of a float network, in place, where that brings their
    results closer to what they are, with all that is read and multiplied rounded.

    Returns the divisors of tensors' channels by name: [channels] each.
    """
    pairs = list(pairs_of(work.graph))
    if not pairs:
        return {}
    judges = judging_records(records)
    batch = batch_size(Interpreter(work), judges)

    def rounded(x: Array, _: Array | None = None) -> Array:
        return shifted(numbers, (x.reshape(-1), np.ones(x.size))).round(x)

    def judge(pair: Pair, tried: list[Floats], inputs: Array) -> list[float]:
        return Rounding(rounded, rounded, rounded, rounded).errors(pair, tried, inputs)

    return factors_of(rescale(work, pairs, judges, batch, list(RULES.values()), judge))
