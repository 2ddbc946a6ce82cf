"""Turn a float network into one that computes with minifloats."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from luciole.interpreter.records import Records, Track, check_records, untracked
from luciole.ir import Array, Graph, Model, Value
from luciole.ir.minifloat import Minifloat
from luciole.ir.names import short_names
from luciole.ir.passes.canonical.unroll_unidirseqlstm import unroll_unidirseqlstm, whole_lstms
from luciole.ir.passes.cleaning.remove_dead import remove_dead
from luciole.lquantizer.assignment.layer_format import Minifloat as MinifloatFormat
from luciole.lquantizer.assignment.minifloat_options import MinifloatOptions
from luciole.lquantizer.calibration.watch import check_finite
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.minifloat.formats import Chosen, Part, Spread, parts_of, same_bits, spreads
from luciole.lquantizer.minifloat.rewrite import to_minifloats
from luciole.lquantizer.minifloat.search import (
    SEARCHED,
    Everywhere,
    Judge,
    Tried,
    narrowed,
    search,
)
from luciole.lquantizer.network.real import check_constants
from luciole.lquantizer.network.result import Result
from luciole.lquantizer.report import LayerReport, Report
from luciole.lquantizer.uniform.preparation import float_network


def quantize_minifloat(
    model: Model,
    records: Records | None,
    options: MinifloatOptions,
    track: Track | None = None,
    labels: Array | None = None,
) -> Result:
    """Let a float network compute with minifloats; the given model stays as it is.

    ``records`` are unlabelled samples by input name; scaling and searching need them. With
    ``labels`` [records] a search minds right answers, else the float network's. LSTMs are unrolled,
    so that what they compute inside is rounded, too. Raises QuantizeError for a network that is
    quantized already, for constants that are no numbers, for data that cannot be used, and where
    no bits are enough.
    """
    track = track or untracked
    work = float_network(model)
    check_constants(work.graph)
    warnings = _unrolled(work.graph)
    if options.needs_data:
        records = _checked(work.graph, records)
    parts = parts_of(work.graph, options.layers_only)
    everywhere = partial(same_bits, parts, _spreads(work, parts, records, options, track))
    tried: list[Tried] = []
    if options.target_drop is None:
        chosen = everywhere(options.numbers)
    else:
        assert records is not None, "a search needs data"
        judge = Judge(work, records, labels)
        chosen, tried = _searched(everywhere, judge, options, track)
    report = Report(_layers(chosen), warnings=warnings, options=_rows(tried))
    return Result(to_minifloats(work, chosen.by_value()), report)


def _spreads(
    work: Model,
    parts: Sequence[Part],
    records: Records | None,
    options: MinifloatOptions,
    track: Track,
) -> dict[Value, Spread] | None:
    """Say what tensors hold where powers of two are chosen by it."""
    if records is None or not options.scaled:
        return None
    return spreads(work, parts, records, track)


def _unrolled(graph: Graph) -> list[str]:
    """Unroll LSTMs; returns which could not be."""
    if unroll_unidirseqlstm(graph):
        remove_dead(graph)
    return [why for why in whole_lstms(graph) if "is not unrolled" in why]


def _checked(graph: Graph, records: Records | None) -> Records:
    if records is None:
        raise QuantizeError("minifloats are scaled, and their bits searched, on data: give some")
    check_records(graph, records)
    check_finite(records)
    return records


def _searched(
    everywhere: Everywhere, judge: Judge, options: MinifloatOptions, track: Track
) -> tuple[Chosen, list[Tried]]:
    """Search bits for the whole network, and then for its parts where that is asked for."""
    target = options.target_drop or 0.0
    tried, chosen = search(judge, everywhere, target, track("searching bits", len(SEARCHED)))
    if options.per_layer:
        step = track("searching layers", len(chosen.parts))
        chosen = narrowed(judge, chosen, target, step)
    return chosen, tried


def _layers(chosen: Chosen) -> list[LayerReport]:
    """Enter each part's bits and the bytes of its constants."""
    short = short_names(part.name for part in chosen.parts)
    return [_layer(part, chosen.bits[part], short[part.name]) for part in chosen.parts]


def _layer(part: Part, numbers: Minifloat, short: str) -> LayerReport:
    found = LayerReport(part.name, numbers.bits, numbers.bits, short=short)
    found.format = str(MinifloatFormat(numbers.exponent, numbers.mantissa))
    found.bytes_before, found.bytes_after = 4 * part.elements, numbers.bytes((part.elements,))
    return found


def _rows(tried: Sequence[Tried]) -> list[dict[str, float | int | str]]:
    return [{"exponent": t.exponent, "mantissa": t.mantissa, "drop": t.drop} for t in tried]
