"""Give each layer as many bits as pay: by measured losses, for a file size or an accuracy.

Every layer is learned alone under every option; the exact front of the sums says which allocations
are worth a fit, and a fit of the whole network decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from luciole.interpreter.records import Records, Track, check_records, untracked
from luciole.ir import Array, Model
from luciole.ir.passes.canonical.unroll_unidirseqlstm import unroll_unidirseqlstm
from luciole.ir.passes.cleaning.remove_dead import remove_dead
from luciole.lquantizer.assignment.config import Config
from luciole.lquantizer.assignment.layer_format import Integers, Levels
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.judging.budget import first_within
from luciole.lquantizer.judging.judge import Loss, enter_verdict
from luciole.lquantizer.judging.metric import Metric
from luciole.lquantizer.judging.records import Split
from luciole.lquantizer.network.real import real_network
from luciole.lquantizer.network.result import Result
from luciole.lquantizer.search.additive import ACCURACY, SIZE, Sum, Table, thinned
from luciole.lquantizer.search.evaluate import Alone, Bench, Size
from luciole.lquantizer.search.space import (
    INTEGER_OPTIONS,
    UNCHANGED,
    Gene,
    Space,
    is_between,
    is_learned,
)
from luciole.lquantizer.search.tasks import tasks_of

BYTES, NIBBLES = str(Integers(8, None)), str(Integers(4, None))
"""Weights of 8 and 4 bits beside float inputs: smaller than learned levels where channels are few.
"""
_LEVELS = tuple(str(Levels(bits, inputs)) for bits in (1, 2, 3, 4) for inputs in (4, 8))
OPTIONS = (*_LEVELS, *INTEGER_OPTIONS, BYTES, NIBBLES)
"""Options of layers: inputs of fewer bits take no fewer bytes worth mentioning."""
_GOALS = (ACCURACY, SIZE)
_FITS = 4
"""Whole fits for a size, at the most."""
_POINTS = 24
"""Allocations that an accuracy is looked for among."""


@dataclass
class Widths:
    """A network, the losses of its layers under each option, and the allocations worth a fit: those
    of integers between operators, and those of other options. Sums know no bytes of conversions
    between both.
    """

    bench: Bench
    table: Table
    alone: list[Alone]
    fronts: list[list[Sum]] = field(default_factory=list)

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
        labels: Array | None = None,
        metric: Metric | None = None,
        target_size: int | None = None,
    ) -> Widths:
        """Measure each layer alone; some of the records judge, which none is learned from.

        Raises QuantizeError for a network that is quantized already, where there are too few
        records, nothing to quantize, and for a ``target_size`` that no file keeps to.
        """
        work = real_network(model)
        check_records(work.graph, records)
        split = Split.for_choices(records, labels)
        if unroll and unroll_unidirseqlstm(work.graph):
            remove_dead(work.graph)
        space = _space(work, config, levels_only)
        space.check_size(work.graph, "target_size", target_size)
        bench = Bench(work, split.learned, split.judges, size, seed=seed, metric=metric)
        tasks = list(tasks_of(space))
        step, alone = (track or untracked)("measuring layers", len(tasks)), []
        for task in tasks:
            alone += bench.alone(task["layer"], task["options"])
            step(1)
        fronts = [Table.of(part, alone).front(_GOALS) for part in _families(space)]
        return cls(bench, Table.of(space, alone), alone, fronts)

    def fit(self, one: Sum) -> Result:
        """Fit an allocation, and list the losses of layers in its report."""
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
        candidates = (space.uniform(option, ends) for option, ends in pairs)
        return [self.table.sum(one) for one in candidates if one is not None]

    def loss(self, result: Result) -> Loss:
        """Measure a network's loss on the records that judge."""
        return self.bench.judge.judge(result.model)


def for_size(widths: Widths, target: int) -> Result:
    """Find the best allocation whose file is no larger than ``target`` bytes: that of the least sum
    of losses, or a uniform one where that loses less. Raises QuantizeError when the smallest one is
    larger.
    """
    size = widths.bench.size
    largest = [_largest(widths, front, target) for front in widths.fronts]
    best = [result for result in largest if result is not None]
    if not best:
        smallest = min(size(widths.fit(front[0]).model) for front in widths.fronts)
        raise QuantizeError(
            f"no allocation fits into {target} bytes: the smallest takes {smallest}"
        )
    room = target - size(widths.bench.model)
    uniform = [one for one in widths.uniform() if one.bytes <= room]
    if uniform:
        other = widths.fit(min(uniform, key=lambda one: one.loss))
        best += [other] if size(other.model) <= target else []
    return min(best, key=lambda result: widths.loss(result).loss)


def _largest(widths: Widths, front: list[Sum], target: int) -> Result | None:
    """Fit the largest allocation that seems to keep to ``target`` bytes; each fit corrects the
    estimate of the next by the bytes of its file. None where none keeps to them.
    """
    size, excess, tried = widths.bench.size, 0, set[int]()
    base, best, reached = size(widths.bench.model), None, -1
    while len(tried) < _FITS:
        place = _place(front, target - base - excess)
        if place in tried:
            break
        tried.add(place)
        result = widths.fit(front[place])
        bytes_now = size(result.model)
        excess = bytes_now - base - front[place].bytes
        if reached < place and bytes_now <= target:
            best, reached = result, place
    return best


def _place(front: list[Sum], room: int) -> int:
    """Find the last allocation that fits into some bytes, else the first."""
    return max((n for n, one in enumerate(front) if one.bytes <= room), default=0)


def for_drop(widths: Widths, target: float) -> Result:
    """Find the smallest allocation that loses at most ``target``, in the unit of the ``Judge``, on
    records that nothing was learned from. Sums only estimate the loss of a fit and the bytes of its
    file: steps between the smallest and the largest are halved, and of those that were fitted the
    smallest file counts.
    """
    size = widths.bench.size
    whole = Sum((), 0.0, size(widths.bench.model), 0.0)
    tried: list[tuple[Result, Loss]] = []

    def drop(steps: Sequence[Sum], place: int) -> float:
        result = widths.fit(steps[place])
        tried.append((result, widths.loss(result)))
        return tried[-1][1].drop

    for front in widths.fronts:
        steps = thinned(front, _GOALS, _POINTS, whole)
        first_within(partial(drop, steps), len(steps), target, len(steps) - 1)
    result, lost = min(tried, key=lambda one: (max(one[1].drop, target), size(one[0].model)))
    enter_verdict(result.report, widths.bench.judge, lost, target)
    return result


def _space(model: Model, config: Config, levels_only: bool) -> Space:
    """Make a space of all options for every layer but those that a config skips, and where there
    are to be ``levels_only``, those that are spared by default.
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


def _families(space: Space) -> Iterator[Space]:
    """Yield the space without integers between operators, and that of these alone; layers that have
    none of either keep all their options.
    """
    for between in {is_between(option) for gene in space.genes for option in gene.options}:
        parts = [[o for o in g.options if is_between(o) == between] for g in space.genes]
        pairs = zip(space.genes, parts, strict=True)
        yield Space(
            tuple(replace(gene, options=tuple(part) or gene.options) for gene, part in pairs)
        )


def _gene(gene: Gene, config: Config, levels_only: bool) -> Gene:
    """Leave a layer its options without floats, or floats alone."""
    named = config.all_layers or any(map(config.names, gene.layers))
    is_float = any(config.choose(name).skip for name in gene.layers)
    is_float |= levels_only and gene.is_end and not named
    options = [option for option in gene.options if (option == UNCHANGED) == is_float]
    if levels_only:
        options = [option for option in options if is_learned(option)]
    return replace(gene, options=tuple(options) or (UNCHANGED,))
