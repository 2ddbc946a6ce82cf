"""Add up what single layers lost: the exact Pareto front of the sum, by dynamic programming."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from luciole.lquantizer.search.evaluate import Alone
from luciole.lquantizer.search.nsga2 import spread, undominated
from luciole.lquantizer.search.space import UNCHANGED, Candidate, Gene, Space

ACCURACY, SIZE, LATENCY = "accuracy", "size", "latency"
OBJECTIVES = (ACCURACY, SIZE, LATENCY)
ON_DEVICE = f"{LATENCY}:"
"""In front of the name of a device whose costs are an objective."""
_STEP = 16
"""Bytes that sizes are told apart by: what buffers of a file are aligned to."""
_PRICES = np.geomspace(1e-5, 1.0, 25)
"""Shares of the network's largest loss that the whole float network's time may be worth."""

_LEAST = 1e-3
"""Added to losses before their logarithm is taken."""

States = dict[int, tuple[float, Candidate]]
"""The least loss, and who has it, of genes so far, by their bytes."""


@dataclass(frozen=True)
class Sum:
    """A candidate, the sum of its layers' losses, and its bytes and microseconds beyond the float
    network's.
    """

    candidate: Candidate
    loss: float
    bytes: int
    us: float
    costs: Mapping[str, float] = field(default_factory=dict)
    """Their costs on other devices, by the devices' names."""


@dataclass(frozen=True)
class Table:
    """The figures of each gene of a space under each of its options, all else float."""

    space: Space
    rows: Sequence[Mapping[str, Alone]]

    @classmethod
    def of(cls, space: Space, measured: Iterable[Alone]) -> Table:
        """Add up the layers of each gene."""
        known: dict[tuple[str, str], Alone] = {(one.layer, one.option): one for one in measured}
        rows = [{o: _together(gene, o, known) for o in gene.options} for gene in space.genes]
        return cls(space, rows)

    def sum(self, candidate: Candidate) -> Sum:
        """Add up the figures of a candidate's genes."""
        chosen = [row[option] for row, option in zip(self.rows, candidate, strict=True)]
        loss, us = sum(one.loss for one in chosen), sum(one.us for one in chosen)
        return Sum(candidate, loss, sum(one.bytes for one in chosen), us, _costs(chosen))

    def pruned(self, objectives: Sequence[str]) -> list[tuple[str, ...]]:
        """List each gene's options without those that another one dominates."""
        return [_pruned(row, objectives) for row in self.rows]

    def front(self, objectives: Sequence[str]) -> list[Sum]:
        """Find the candidates that none dominates, from the smallest to the largest. With latency
        they are those of any price of a microsecond.
        """
        timed = [name for name in objectives if name.startswith(LATENCY)]
        priced = [(name, price) for name in timed for price in self._prices(name)]
        pairs = [(LATENCY, 0.0), *priced]
        sum_of = {c: self.sum(c) for name, price in pairs for c in self._exact(name, price)}
        values = np.array([values_of(one, objectives) for one in sum_of.values()])
        sums = list(sum_of.values())
        return sorted((sums[i] for i in undominated(values)), key=lambda one: one.bytes)

    def _prices(self, name: str) -> list[float]:
        """Return prices of a microsecond, or of a device's unit, in units of loss."""
        most = sum(max(one.loss for one in row.values()) for row in self.rows)
        time = sum(max(abs(time_of(one, name)) for one in row.values()) for row in self.rows) or 1.0
        return [float(price) * most / time for price in _PRICES]

    def _exact(self, name: str, price: float) -> list[Candidate]:
        """Extend the best candidates of each size gene by gene, and drop dominated ones."""
        states: States = {0: (0.0, ())}
        for row in self.rows:
            steps = {
                option: (round(one.bytes / _STEP), one.loss + price * time_of(one, name))
                for option, one in row.items()
            }
            states = _undominated(_grown(states, steps))
        return [candidate for _, candidate in states.values()]


def values_of(one: Sum, objectives: Sequence[str]) -> tuple[float, ...]:
    """Take the objectives of a sum."""
    every = {ACCURACY: one.loss, SIZE: float(one.bytes)}
    return tuple(every[n] if n in every else time_of(one, n) for n in objectives)


def time_of(one: Sum | Alone, objective: str) -> float:
    """Read the microseconds measured here, or those of the device in "latency:NAME"."""
    return one.us if objective == LATENCY else one.costs[objective.removeprefix(ON_DEVICE)]


def _costs(chosen: Sequence[Sum | Alone]) -> dict[str, float]:
    names = dict.fromkeys(name for one in chosen for name in one.costs)
    return {name: sum(one.costs[name] for one in chosen) for name in names}


def spacing(one: Sum, objectives: Sequence[str]) -> tuple[float, ...]:
    """Take the objectives of a whole network as they tell how alone it is: logarithms, so that a
    tenth more is as far at every loss, size and time, and losses too small to matter are equal.
    """
    every = {ACCURACY: math.log(one.loss + _LEAST), SIZE: math.log(max(one.bytes, 1))}
    return tuple(
        every[n] if n in every else math.log(max(time_of(one, n), 1e-3)) for n in objectives
    )


def corner(whole: Sum, objectives: Sequence[str]) -> tuple[float, ...]:
    """Return the far corner of the box that networks are to dominate: a loss of 1, and the bytes
    and twice the times of the float network, ``whole``.
    """
    costs = {name: 2 * cost for name, cost in whole.costs.items()}
    return values_of(Sum((), 1.0, whole.bytes, 2 * whole.us, costs), objectives)


def thinned(sums: Sequence[Sum], objectives: Sequence[str], count: int, whole: Sum) -> list[Sum]:
    """Keep ``count`` networks of a front beside the float network, ``whole``: the most isolated
    ones, in the given order.
    """
    if len(sums) <= count:
        return list(sums)
    values = np.array([spacing(_beside(one, whole), objectives) for one in sums])
    return [sums[i] for i in spread(values, count)]


def bisected(ordered: Sequence[Sum]) -> list[Sum]:
    """Order from the ends inwards: the last, the first, the middle, the quarters, and so on."""
    places, gaps = [len(ordered) - 1, 0], deque([(0, len(ordered) - 1)])
    while gaps:
        low, high = gaps.popleft()
        if high - low > 1:
            middle = (low + high) // 2
            places.append(middle)
            gaps += [(low, middle), (middle, high)]
    return [ordered[place] for place in dict.fromkeys(places)] if ordered else []


def _beside(one: Sum, whole: Sum) -> Sum:
    costs = {name: cost + one.costs[name] for name, cost in whole.costs.items()}
    return Sum(one.candidate, one.loss, whole.bytes + one.bytes, whole.us + one.us, costs)


def _together(gene: Gene, option: str, known: Mapping[tuple[str, str], Alone]) -> Alone:
    """Add up the layers of a gene; those that share their weights were measured as one."""
    parts = [known[name, option] for name in gene.measured]
    loss, us = sum(one.loss for one in parts), sum(one.us for one in parts)
    size = sum(one.bytes for one in parts)
    return Alone(gene.layers[0], option, size, loss, us, costs=_costs(parts))


def _pruned(row: Mapping[str, Alone], objectives: Sequence[str]) -> tuple[str, ...]:
    values = [
        values_of(Sum((option,), one.loss, one.bytes, one.us, one.costs), objectives)
        for option, one in row.items()
    ]
    kept = undominated(np.array(values))
    names = list(row)
    return tuple(names[i] for i in kept) or (UNCHANGED,)


def _grown(states: States, steps: Mapping[str, tuple[int, float]]) -> States:
    """Extend each candidate by each option with its size and loss; the best one of each size is
    left.
    """
    grown: States = {}
    for size, (loss, candidate) in states.items():
        for option, (larger, worse) in steps.items():
            place, total = size + larger, loss + worse
            if place not in grown or total < grown[place][0]:
                grown[place] = (total, (*candidate, option))
    return grown


def _undominated(
    states: Mapping[int, tuple[float, Candidate]],
) -> dict[int, tuple[float, Candidate]]:
    lowest, kept = np.inf, {}
    for size in sorted(states):
        if states[size][0] < lowest - 1e-12:
            lowest, kept[size] = states[size][0], states[size]
    return kept
