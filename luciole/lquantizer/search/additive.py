"""What single layers lost, added up: the exact Pareto front of the sum, by dynamic programming."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from luciole.lquantizer.schemes import FLOAT
from luciole.lquantizer.search.evaluate import Alone
from luciole.lquantizer.search.nsga2 import spread, undominated
from luciole.lquantizer.search.space import Candidate, Gene, Space

ACCURACY, SIZE, LATENCY = "accuracy", "size", "latency"
OBJECTIVES = (ACCURACY, SIZE, LATENCY)
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
    """A candidate, what its layers alone lose together, and what they add to the float network's
    bytes and microseconds.
    """

    candidate: Candidate
    loss: float
    bytes: int
    us: float


@dataclass(frozen=True)
class Table:
    """What each gene of a space is under each of its options, all else float."""

    space: Space
    rows: Sequence[Mapping[str, Alone]]

    @classmethod
    def of(cls, space: Space, measured: Iterable[Alone]) -> Table:
        """Add up the layers of each gene."""
        known: dict[tuple[str, str], Alone] = {(one.layer, one.option): one for one in measured}
        rows = [{o: _together(gene, o, known) for o in gene.options} for gene in space.genes]
        return cls(space, rows)

    def sum(self, candidate: Candidate) -> Sum:
        """Add up what a candidate's genes are."""
        chosen = [row[option] for row, option in zip(self.rows, candidate, strict=True)]
        loss, us = sum(one.loss for one in chosen), sum(one.us for one in chosen)
        return Sum(candidate, loss, sum(one.bytes for one in chosen), us)

    def pruned(self, objectives: Sequence[str]) -> list[tuple[str, ...]]:
        """List each gene's options without those that another one is nowhere worse than."""
        return [_pruned(row, objectives) for row in self.rows]

    def front(self, objectives: Sequence[str]) -> list[Sum]:
        """Find the candidates that none dominates, from the smallest to the largest. With latency
        they are those of any price of a microsecond.
        """
        prices = [0.0, *self._prices()] if LATENCY in objectives else [0.0]
        found = {c: self.sum(c) for price in prices for c in self._exact(price)}
        values = np.array([values_of(one, objectives) for one in found.values()])
        sums = list(found.values())
        return sorted((sums[i] for i in undominated(values)), key=lambda one: one.bytes)

    def _prices(self) -> list[float]:
        """Make prices of a microsecond in units of loss."""
        most = sum(max(one.loss for one in row.values()) for row in self.rows)
        time = sum(max(abs(one.us) for one in row.values()) for row in self.rows) or 1.0
        return [float(price) * most / time for price in _PRICES]

    def _exact(self, price: float) -> list[Candidate]:
        """Extend the best candidates of each size gene by gene, and drop what is dominated."""
        states: States = {0: (0.0, ())}
        for row in self.rows:
            grown: States = {}
            for size, (loss, candidate) in states.items():
                for option, one in row.items():
                    total = loss + one.loss + price * one.us
                    place = size + round(one.bytes / _STEP)
                    if place not in grown or total < grown[place][0]:
                        grown[place] = (total, (*candidate, option))
            states = _undominated(grown)
        return [candidate for _, candidate in states.values()]


def values_of(one: Sum, objectives: Sequence[str]) -> tuple[float, ...]:
    """Take the objectives of a sum."""
    every = {ACCURACY: one.loss, SIZE: float(one.bytes), LATENCY: one.us}
    return tuple(every[name] for name in objectives)


def spacing(one: Sum, objectives: Sequence[str]) -> tuple[float, ...]:
    """Take the objectives of a whole network as they tell how alone it is: logarithms, so that a
    tenth more is as far at every loss, size and time, and losses too small to matter are equal.
    """
    size, us = max(one.bytes, 1), max(one.us, 1e-3)
    every = {ACCURACY: math.log(one.loss + _LEAST), SIZE: math.log(size), LATENCY: math.log(us)}
    return tuple(every[name] for name in objectives)


def thinned(sums: Sequence[Sum], objectives: Sequence[str], count: int, whole: Sum) -> list[Sum]:
    """Keep so many of a front beside the float network, ``whole``: those that are most alone, in
    the given order.
    """
    if len(sums) <= count:
        return list(sums)
    values = np.array([spacing(_beside(one, whole), objectives) for one in sums])
    return [sums[i] for i in spread(values, count)]


def _beside(one: Sum, whole: Sum) -> Sum:
    return Sum(one.candidate, one.loss, whole.bytes + one.bytes, whole.us + one.us)


def _together(gene: Gene, option: str, known: Mapping[tuple[str, str], Alone]) -> Alone:
    """Add up the layers of a gene; those that share their weights were measured as one."""
    found = [known[name, option] for name in gene.measured]
    loss, us = sum(one.loss for one in found), sum(one.us for one in found)
    return Alone(gene.layers[0], option, sum(one.bytes for one in found), loss, us)


def _pruned(row: Mapping[str, Alone], objectives: Sequence[str]) -> tuple[str, ...]:
    values = [
        values_of(Sum((option,), one.loss, one.bytes, one.us), objectives)
        for option, one in row.items()
    ]
    kept = undominated(np.array(values))
    names = list(row)
    return tuple(names[i] for i in kept) or (FLOAT,)


def _undominated(
    states: Mapping[int, tuple[float, Candidate]],
) -> dict[int, tuple[float, Candidate]]:
    lowest, kept = np.inf, {}
    for size in sorted(states):
        if states[size][0] < lowest - 1e-12:
            lowest, kept[size] = states[size][0], states[size]
    return kept
