"""Turn a float network into one that computes with minifloats, of given bits or of the fewest with
which it still answers alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from luciole.interpreter.records import Progress, Records, Track, check_records, untracked
from luciole.ir import Array, Graph, Model, Value
from luciole.ir.minifloat import Minifloat
from luciole.ir.names import short_names
from luciole.ir.passes.canonical.unroll_unidirseqlstm import unroll_unidirseqlstm, whole_lstms
from luciole.ir.passes.cleaning.remove_dead import remove_dead
from luciole.lquantizer.assignment.layer_format import Minifloat as MinifloatFormat
from luciole.lquantizer.assignment.minifloat_options import MinifloatOptions
from luciole.lquantizer.calibration.watch import check_finite
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.judging.budget import taken_away
from luciole.lquantizer.judging.judge import Judge, Loss, enter_verdict
from luciole.lquantizer.judging.metric import Metric
from luciole.lquantizer.judging.records import NOT_TAUGHT, Judges, Split
from luciole.lquantizer.network.float_network import float_network
from luciole.lquantizer.network.minifloats import (
    Chosen,
    Part,
    Spread,
    even_minifloats,
    parts_of,
    same_bits,
    spreads,
)
from luciole.lquantizer.network.real import check_constants
from luciole.lquantizer.network.rescale import note_factors
from luciole.lquantizer.network.result import Result
from luciole.lquantizer.report import LayerReport, Report
from luciole.lquantizer.rewrite.minifloat import to_minifloats

_JUDGED = Minifloat(4, 3)
"""Numbers that rescalings are judged by where bits are searched later."""
_EXPONENTS, _MANTISSAS = (5, 4, 3, 2), (7, 6, 5, 4, 3, 2)
"""Bits that are tried."""
_HOPELESS = 20.0
"""Points beyond the target, after which fewer bits of mantissa are not tried; none where a metric
has a unit of its own."""

Everywhere = Callable[[Minifloat], Chosen]
"""Gives all parts of a network the same bits."""
Drop = Callable[[Chosen], float]
"""Judges a network of minifloats."""


def quantize_minifloat(
    model: Model,
    records: Records | None,
    options: MinifloatOptions,
    track: Track | None = None,
    labels: Array | None = None,
    metric: Metric | None = None,
) -> Result:
    """Make a float network compute with minifloats; the given model stays as it is.

    ``records`` are unlabelled samples by input name; scaling and searching need them. With
    ``labels`` [records] a search minds right answers, with a ``metric`` that, else the float
    network's answers. LSTMs are unrolled, so that what they compute inside is rounded, too. Raises
    QuantizeError for a network that is quantized already, for constants that are no numbers, for
    data that cannot be used, and where no bits are enough.
    """
    track = track or untracked
    work = float_network(model)
    check_constants(work.graph)
    warnings = _unrolled(work.graph)
    split = _split(work.graph, records, labels, options) if options.needs_data else None
    learned = None if split is None else split.learned
    factors = _evened(work, learned, options)
    parts = parts_of(work.graph, options.layers_only)
    everywhere = partial(same_bits, parts, _spreads(work, parts, learned, options, track))
    report = Report(warnings=warnings)
    if options.target_drop is None:
        chosen = everywhere(options.numbers)
    else:
        assert split is not None, "a search needs data"
        judge = Judge(work, split.judges, metric)
        chosen = _searched(work, everywhere, judge, options, report, track)
    report.layers = _layers(chosen)
    made = to_minifloats(work, chosen.by_value())
    note_factors(made.graph, factors)
    return Result(made, report)


def _evened(work: Model, records: Records | None, options: MinifloatOptions) -> dict[str, Array]:
    """Rescale channels where powers of two are chosen; returns their divisors by tensors' names."""
    if records is None or not options.scaled:
        return {}
    searched = options.target_drop is not None
    return even_minifloats(work, records, _JUDGED if searched else options.numbers)


def _spreads(
    work: Model,
    parts: Sequence[Part],
    records: Records | None,
    options: MinifloatOptions,
    track: Track,
) -> dict[Value, Spread] | None:
    """Collect the numbers of tensors where powers of two are chosen by them."""
    if records is None or not options.scaled:
        return None
    return spreads(work, parts, records, track)


def _unrolled(graph: Graph) -> list[str]:
    """Unroll LSTMs; returns which could not be."""
    if unroll_unidirseqlstm(graph):
        remove_dead(graph)
    return [why for why in whole_lstms(graph) if "is not unrolled" in why]


def _split(
    graph: Graph, records: Records | None, labels: Array | None, options: MinifloatOptions
) -> Split:
    """Part records into those that teach scales and those that judge bits; where only one of the
    two is asked for, all are of it.
    """
    if records is None:
        raise QuantizeError("minifloats are scaled, and their bits searched, on data: give some")
    check_records(graph, records)
    check_finite(records)
    if options.scaled and options.target_drop is not None:
        return Split.for_choices(records, labels)
    return Split(records, Judges(records, NOT_TAUGHT, labels), labels)


def _searched(
    work: Model,
    everywhere: Everywhere,
    judge: Judge,
    options: MinifloatOptions,
    report: Report,
    track: Track,
) -> Chosen:
    """Search bits for the whole network, and then for its parts where that is asked for; report
    what was tried and what the network loses.
    """

    def lost(chosen: Chosen) -> Loss:
        return judge.judge(to_minifloats(work, chosen.by_value()))

    def drop(chosen: Chosen) -> float:
        return lost(chosen).drop

    target = options.target_drop or 0.0
    step = track("searching bits", len(_EXPONENTS))
    tried, chosen = search(judge, drop, everywhere, target, step)
    if options.per_layer:
        step = track("searching layers", len(chosen.parts))
        chosen = narrowed(drop, chosen, target, step)
    report.options = _rows(tried)
    enter_verdict(report, judge, lost(chosen), target)
    return chosen


def _layers(chosen: Chosen) -> list[LayerReport]:
    """Enter each part's bits and the bytes of its constants."""
    short = short_names(part.name for part in chosen.parts)
    return [_layer(part, chosen.bits[part], short[part.name]) for part in chosen.parts]


def _layer(part: Part, numbers: Minifloat, short: str) -> LayerReport:
    report = LayerReport(part.name, numbers.bits, numbers.bits, short=short)
    report.format = str(MinifloatFormat(numbers.exponent, numbers.mantissa))
    report.bytes_before, report.bytes_after = 4 * part.elements, numbers.bytes((part.elements,))
    return report


def _rows(tried: Sequence[Tried]) -> list[dict[str, float | int | str]]:
    return [{"exponent": t.exponent, "mantissa": t.mantissa, "drop": t.drop} for t in tried]


@dataclass(frozen=True)
class Tried:
    """Bits that were tried, and their losses in the unit of the judge."""

    exponent: int
    mantissa: int
    drop: float

    @property
    def bits(self) -> int:
        """Bits of one number."""
        return 1 + self.exponent + self.mantissa


def search(
    judge: Judge, drop: Drop, everywhere: Everywhere, target: float, step: Progress
) -> tuple[list[Tried], Chosen]:
    """Try numbers of bits for the whole network; returns all that were tried, and the fewest bits
    that lose at most the target, of these the ones that lose least.

    The order is that of the published search: bits of mantissa are dropped as long as the answers
    stay, for each number of bits of the exponent (FAT, Goncharenko et al., chapter on minifloats).

    Raises QuantizeError where all lose more.
    """
    limit = target + (0.0 if judge.metric else _HOPELESS)
    tried: list[Tried] = []
    for exponent in _EXPONENTS:
        numbers = [Minifloat(exponent, mantissa) for mantissa in _MANTISSAS]
        costs = taken_away(numbers, lambda one: drop(everywhere(one)), limit)
        tried += [Tried(one.exponent, one.mantissa, lost) for one, lost in costs]
        step(1)
    good = [t for t in tried if t.drop <= target]
    if not good:
        best = min(tried, key=lambda t: t.drop)
        raise QuantizeError(
            f"no minifloat keeps to {target:g}: <{best.exponent},{best.mantissa}> has "
            f"{best.drop:.4g} {judge.unit}"
        )
    best = min(good, key=lambda t: (t.bits, t.drop))
    return tried, everywhere(Minifloat(best.exponent, best.mantissa))


def narrowed(drop: Drop, chosen: Chosen, target: float, step: Progress) -> Chosen:
    """Take bits of mantissa from single parts, those with most elements first, as long as the loss
    keeps to the target.
    """
    for part in sorted(chosen.parts, key=lambda part: -part.elements):
        for narrower, lost in taken_away(_narrower(chosen, part), drop, target):
            chosen = narrower if lost <= target else chosen
        step(1)
    return chosen


def _narrower(chosen: Chosen, part: Part) -> Iterator[Chosen]:
    """Take one bit of mantissa after the other from a part, but for the last."""
    now = chosen.bits[part]
    for mantissa in range(now.mantissa - 1, 0, -1):
        fewer = Minifloat(now.exponent, mantissa)
        yield Chosen(chosen.parts, {**chosen.bits, part: fewer}, chosen.spreads)
