"""Give each layer as many bits as pay: by measured losses, for a file size or an accuracy.

Every layer is learned alone under every option; the exact front of the sums says which allocations
are worth a fit, and a fit of the whole network decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from luciole.interpreter.records import Records, Track, check_records, untracked
from luciole.ir import Model
from luciole.ir.passes.canonical.unroll_unidirseqlstm import unroll_unidirseqlstm
from luciole.ir.passes.cleaning.remove_dead import remove_dead
from luciole.lquantizer.assignment.config import Config
from luciole.lquantizer.assignment.layer_format import Integers, Levels
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.network.real import real_network
from luciole.lquantizer.network.result import Result
from luciole.lquantizer.network.sampling import HELD_BACK
from luciole.lquantizer.search.additive import ACCURACY, SIZE, Sum, Table, thinned
from luciole.lquantizer.search.evaluate import Alone, Bench, Size
from luciole.lquantizer.search.search import tasks_of
from luciole.lquantizer.search.space import UNCHANGED, Gene, Space, is_learned

BYTES, NIBBLES = str(Integers(8, None)), str(Integers(4, None))
"""Weights of 8 and 4 bits beside float inputs: smaller than learned levels where channels are few.
"""
_LEVELS = tuple(str(Levels(bits, inputs)) for bits in (1, 2, 3, 4) for inputs in (4, 8))
OPTIONS = (*_LEVELS, BYTES, NIBBLES)
"""What layers may be: inputs of fewer bits take no fewer bytes worth mentioning."""
_GOALS = (ACCURACY, SIZE)
_FITS = 4
"""Whole fits for a size, at the most."""
_POINTS = 24
"""Allocations that an accuracy is looked for among."""


@dataclass
class Widths:
    """A network, what its layers lose under each option, and the allocations worth a fit."""

    bench: Bench
    table: Table
    alone: list[Alone]
    front: list[Sum] = field(default_factory=list)

    @classmethod
    def measure(
        cls,
        model: Model,
        records: Records,
        config: Config,
        size: Size,
        seed: int = 0,
        track: Track | None = None,
        unroll: bool = False,
        levels_only: bool = False,
    ) -> Widths:
        """Measure each layer alone; one record in ``HELD_BACK`` judges, none is learned from twice.

        Raises QuantizeError for a network that is quantized already, where there are too few
        records, and nothing to quantize.
        """
        work = real_network(model)
        if check_records(work.graph, records) < HELD_BACK:
            raise QuantizeError(f"automatic widths need at least {HELD_BACK} records")
        judges = {n: a[HELD_BACK - 1 :: HELD_BACK] for n, a in records.items()}
        kept = {n: np.delete(a, np.s_[HELD_BACK - 1 :: HELD_BACK], 0) for n, a in records.items()}
        if unroll and unroll_unidirseqlstm(work.graph):
            remove_dead(work.graph)
        space = _space(work, config, levels_only)
        bench = Bench(work, kept, judges, size, seed=seed)
        tasks = list(tasks_of(space))
        step, alone = (track or untracked)("measuring layers", len(tasks)), []
        for task in tasks:
            alone += bench.alone(task["layer"], task["options"])
            step(1)
        table = Table.of(space, alone)
        return cls(bench, table, alone, table.front(_GOALS))

    def fit(self, one: Sum) -> Result:
        """Fit an allocation, and say in its report what layers lose."""
        result = self.bench.fit(self.table.space.by_layer(one.candidate))
        result.report.options = [
            {"layer": a.layer, "option": a.option, "bytes": a.bytes, "error": a.loss}
            for a in self.alone
        ]
        return result

    def uniform(self) -> list[Sum]:
        """List the networks with one option everywhere, be it with ends of 8-bit weights."""
        space = self.table.space
        pairs = ((option, ends) for option in OPTIONS for ends in (None, BYTES))
        found = (space.uniform(option, ends) for option, ends in pairs)
        return [self.table.sum(one) for one in found if one is not None]

    def loss(self, result: Result) -> float:
        """Say what a network loses on the records that judge."""
        return self.bench.judge.judge(result.model).loss

    def drop(self, result: Result) -> float:
        """Say how many percent of a classifier's answers change, or else what the squared error is
        in percent of the outputs' variance, on the records that judge.
        """
        lost = self.bench.judge.judge(result.model)
        return 100 * (lost.loss if lost.agreement is None else 1 - lost.agreement)


def for_size(
    model: Model,
    records: Records,
    config: Config,
    target: int,
    size: Size,
    seed: int = 0,
    track: Track | None = None,
    unroll: bool = False,
    levels_only: bool = False,
) -> Result:
    """Find the best allocation whose file is no larger than ``target`` bytes: that of the least sum
    of losses, or a uniform one where that loses less. Raises QuantizeError when the smallest one is
    larger.
    """
    widths = Widths.measure(model, records, config, size, seed, track, unroll, levels_only)
    best = _largest(widths, widths.front, target)
    if best is None:
        smallest = size(widths.fit(widths.front[0]).model)
        raise QuantizeError(
            f"no allocation fits into {target} bytes: the smallest takes {smallest}"
        )
    room = target - size(widths.bench.model)
    uniform = [one for one in widths.uniform() if one.bytes <= room]
    if not uniform:
        return best
    other = widths.fit(min(uniform, key=lambda one: one.loss))
    is_better = size(other.model) <= target and widths.loss(other) < widths.loss(best)
    return other if is_better else best


def _largest(widths: Widths, front: list[Sum], target: int) -> Result | None:
    """Fit the largest allocation that seems to fit; what a fit's file takes besides what layers
    alone do is known for the next. None where none fits.
    """
    size, excess, tried = widths.bench.size, 0, set[int]()
    base, best, reached = size(widths.bench.model), None, -1
    while len(tried) < _FITS:
        place = _place(front, target - base - excess)
        if place in tried:
            break
        tried.add(place)
        result = widths.fit(front[place])
        found = size(result.model)
        excess = found - base - front[place].bytes
        if reached < place and found <= target:
            best, reached = result, place
    return best


def _place(front: list[Sum], room: int) -> int:
    """Find the last allocation that fits into so many bytes, else the first."""
    return max((n for n, one in enumerate(front) if one.bytes <= room), default=0)


def for_drop(
    model: Model,
    records: Records,
    config: Config,
    target: float,
    size: Size,
    seed: int = 0,
    track: Track | None = None,
    unroll: bool = False,
    levels_only: bool = False,
) -> Result:
    """Find the smallest allocation that changes at most ``target`` percent of a classifier's
    answers, or whose squared error is at most so many percent of the outputs' variance where they
    are no classes, on records that nothing was learned from.
    """
    widths = Widths.measure(model, records, config, size, seed, track, unroll, levels_only)
    whole = Sum((), 0.0, size(widths.bench.model), 0.0)
    steps = thinned(widths.front, _GOALS, _POINTS, whole)
    best, lost = _smallest(steps, target, widths.fit, widths.drop, widths.bench.size)
    if lost > target:
        what = "of the answers" if widths.bench.judge.has_classes else "of the variance"
        best.report.warnings.append(
            f"even 8 bits change {lost:.2f} % {what}, {target:g} % were wanted"
        )
    return best


def _smallest(
    steps: list[Sum],
    target: float,
    fit: Callable[[Sum], Result],
    drop: Callable[[Result], float],
    size: Size,
) -> tuple[Result, float]:
    """Halve the steps until the smallest one that keeps to the target is found, else the last; of
    those that were fitted the smallest file counts, which sums only estimate.
    """
    low, high = 0, len(steps) - 1
    best = fit(steps[high])
    lost = drop(best)
    while low < high and lost <= target:
        middle = (low + high) // 2
        result = fit(steps[middle])
        found = drop(result)
        if found > target:
            low = middle + 1
            continue
        high = middle
        if size(result.model) <= size(best.model):
            best, lost = result, found
    return best, lost


def _space(model: Model, config: Config, levels_only: bool) -> Space:
    """Let every layer be anything but those that a config leaves alone, and where there are to be
    ``levels_only``, those that are spared by default.
    """
    space = Space.of(model.graph, (*OPTIONS, UNCHANGED))
    names = [name for gene in space.genes for name in gene.layers]
    chosen = config.among(names)
    unused = chosen.unused(names)
    if unused:
        raise QuantizeError(f"config: {unused[0]!r} matches no layer; the layers are {names}")
    genes = tuple(_gene(gene, chosen, levels_only) for gene in space.genes)
    if not any(is_learned(option) for gene in genes for option in gene.options):
        raise QuantizeError("nothing to quantize: no layer can get learned levels")
    return Space(genes)


def _gene(gene: Gene, config: Config, levels_only: bool) -> Gene:
    """Take floats off what a layer may be, or leave nothing else."""
    named = config.all_layers or any(map(config.names, gene.layers))
    is_float = any(config.choose(name).skip for name in gene.layers)
    is_float |= levels_only and gene.is_end and not named
    options = [option for option in gene.options if (option == UNCHANGED) == is_float]
    if levels_only:
        options = [option for option in options if is_learned(option)]
    return replace(gene, options=tuple(options) or (UNCHANGED,))
