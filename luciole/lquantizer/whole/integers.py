"""Quantize a whole network to uniform integers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from luciole.interpreter.records import Records, Track, check_records, digests, untracked
from luciole.ir import Graph, Model, Op
from luciole.ir.equalization import forget_missing
from luciole.ir.names import short_names
from luciole.ir.ops.unidirectional_sequence_lstm import LSTMLayer
from luciole.ir.passes.cleaning.remove_dead import remove_dead, remove_dead_buffers
from luciole.lquantizer.assignment.choices import Choices, everywhere
from luciole.lquantizer.assignment.format_of import word_of
from luciole.lquantizer.assignment.layer_format import Integers
from luciole.lquantizer.assignment.schemes import (
    SCHEMES,
    Scheme,
    UniformOptions,
    chosen_format,
    uniform_types,
)
from luciole.lquantizer.calibration.watch import check_finite
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.network.carried import with_finer_cells
from luciole.lquantizer.network.fake_quant import TrainedGrids
from luciole.lquantizer.network.float_network import Start, prepared
from luciole.lquantizer.network.grids import without_grid
from luciole.lquantizer.network.limits import Limits, given_ranges
from luciole.lquantizer.network.places import float_operators, integers_of, reasons, types_of
from luciole.lquantizer.network.real import check_float
from luciole.lquantizer.network.rescale import note_factors
from luciole.lquantizer.network.result import Result
from luciole.lquantizer.report import LayerReport, Report
from luciole.lquantizer.rewrite.integers import stored_bytes
from luciole.lquantizer.rewrite.rounded import Rounded
from luciole.lquantizer.whole.integer_layers import Known, Walked, recurrent, walk
from luciole.lquantizer.whole.rescaling import rescale_channels
from luciole.lquantizer.whole.weights import learn_weights, store_weights


def quantize_uniform(
    model: Model,
    records: Records | None,
    options: UniformOptions,
    track: Track | None = None,
    choices: Choices | None = None,
    known: Known | None = None,
    asked: frozenset[str] = frozenset(),
) -> Result:
    """Quantize a float network to uniform integers; the given model stays as it is.

    ``records`` are unlabelled samples by input name, the first axis counting them; schemes that
    leave tensors between operators float need none, nor do others whose ranges are all given and
    whose weights are rounded to the nearest. ``choices`` gives each operator of the network
    a scheme; without them the options do. ``known`` is of a network that was given to ``prepare``
    already. Operators whose formats rules have ``asked`` for by name get no finer ones.

    Raises QuantizeError for a network that is quantized already, for one without anything to
    quantize, and for data that cannot be used.
    """
    ready = known is not None
    known = (known or known_of(options)).obeying(asked)
    needs_data = options.needs_data
    start = _begun(model, options, choices or _whole(model, options), asked)
    work, options, schemes = start.work, start.options, start.schemes
    names = {op: op.name for graph in work.graphs for op in graph.ops}
    why, integers = reasons(work.graph, schemes), integers_of(schemes)
    warnings = start.warnings(has_data=records is not None)
    if types_of(schemes) and needs_data and records is None:
        raise QuantizeError(f"the scheme {options.scheme} learns from data: give some")
    if not ready:
        prepare(work, records, options, known, schemes)
    walked, rounded = Walked({}, {}, set()), None
    if start.trained.tensors and records is None:
        integers = _trained_alone(work.graph, integers, start.trained)
    if integers:
        walked = walk(work, records, integers, options, track or untracked, known, start.trained)
    note_factors(work.graph, known.limits.factors)
    if integers:
        whole = _rounded(work, walked, options)
        rounded = whole.copy()
        whole.finish()
    inner = schemes_inside(work, options) if choices is None else {}
    learned = learn_weights(work, schemes, records, options, track or untracked)
    stored = _weights_alone(work, schemes | inner, options, walked, learned)
    why |= walked.lost
    if not walked.integers and not stored and not learned:
        raise _nothing(work.graph, schemes | inner, why)
    report = _report(walked.reports | learned | stored, names)
    report.warnings += warnings
    report.rules = [] if options.per_operator is None else list(options.per_operator.report())
    report.tensors = known.tensors
    report.floats = float_operators(work.graph, why) if types_of(schemes) else []
    _leave_out_unused(work)
    ranges = known.limits.ranges() if integers else None
    return Result(work, report, walked.latents, {}, rounded, ranges, digests(records))


def _begun(model: Model, options: UniformOptions, choices: Choices, asked: frozenset[str]) -> Start:
    """Bring a network into the form that is quantized; recurrent cells whose grids are not trained
    have 16 bits.
    """
    start = prepared(model, options, choices)
    if start.trained.tensors:
        return start
    return replace(start, schemes=with_finer_cells(start.work.graph, start.schemes, asked))


def _rounded(work: Model, walked: Walked, options: UniformOptions) -> Rounded:
    """Take a network that rounds its tensors together with what it shall become."""
    chosen = frozenset(walked.integers)
    return Rounded(work, chosen, options.input_type, options.output_type, walked.levels)


def _leave_out_unused(work: Model) -> None:
    remove_dead(work.graph)
    forget_missing(work)
    remove_dead_buffers(work)


def known_of(options: UniformOptions) -> Known:
    """Begin with the ranges that the options give. Raises QuantizeError for ranges that cannot be
    read, and for a rule that there is not.
    """
    return Known(Limits(options, given_ranges(options.ranges_from)))


def _whole(model: Model, options: UniformOptions) -> Choices:
    """Choose for a network that nobody chose for, and which thus has no learned levels by now.
    Raises QuantizeError where it is quantized already.
    """
    check_float(model)
    return _choices(options)


def schemes_everywhere(graph: Graph, options: UniformOptions) -> dict[Op, Scheme]:
    """Choose for a float network what the options alone choose for each operator."""
    return with_finer_cells(graph, uniform_types(_choices(options)(graph)), frozenset())


def _choices(options: UniformOptions) -> Choices:
    """Return the choices of the options."""
    if options.per_operator is not None:
        return options.per_operator.choices
    return everywhere(chosen_format(options.scheme))


def prepare(
    work: Model,
    records: Records | None,
    options: UniformOptions,
    known: Known,
    schemes: Mapping[Op, Scheme],
) -> None:
    """Check the data, and rescale channels between the layers that get ``schemes``, unless that is
    unwanted.

    Raises QuantizeError for data that cannot be used, and as ``rescale_channels`` does.
    """
    if records is not None:
        check_records(work.graph, records)
        check_finite(records)
    rescale_channels(work, records, options, known, schemes)


def schemes_inside(work: Model, options: UniformOptions) -> dict[Op, Scheme]:
    """Choose for the operators of graphs that are called, whose tensors stay float."""
    chosen = _choices(options)
    return uniform_types({op: c for graph in work.graphs[1:] for op, c in chosen(graph).items()})


def _trained_alone(
    graph: Graph, integers: dict[Op, Scheme], trained: TrainedGrids
) -> dict[Op, Scheme]:
    """Choose the operators whose tensors all have trained scales. Raises QuantizeError where there
    are none.
    """
    inside = set(recurrent(graph, integers))  # of which nothing is said
    integers = {op: types for op, types in integers.items() if op not in inside}
    while missing := without_grid(graph, types_of(integers), trained.tensors):
        near = {op for op in integers if not missing.isdisjoint((*op.operands, *op.results))}
        integers = {op: types for op, types in integers.items() if op not in near}
    if not integers:
        raise QuantizeError("nothing to quantize: no operator's input and result are given")
    return integers


def _weights_alone(
    work: Model,
    schemes: Mapping[Op, Scheme],
    options: UniformOptions,
    walked: Walked,
    learned: Collection[Op],
) -> dict[Op, LayerReport]:
    """Give layers whose tensors stay float their integers in the weights: those that ask for that,
    those of graphs that are called, recurrent ones, and those beside a pole.
    """
    reports: dict[Op, LayerReport] = {}
    of_main = set(work.graph.ops)
    dynamic = SCHEMES[Integers(8, None)]
    alone = {op: types for op, types in schemes.items() if types.activations is None}
    for op, types in schemes.items():
        apart = op not in of_main or isinstance(op, LSTMLayer) or op in walked.lost
        if types.activations is not None and apart:
            alone[op] = dynamic
    for graph in work.graphs:
        reports |= store_weights(graph, alone, options, learned)
        remove_dead(graph)
    return reports


def _nothing(graph: Graph, schemes: Mapping[Op, Scheme], why: Mapping[Op, str]) -> QuantizeError:
    """Return the error for a network without any integers, with the first operator's reason."""
    if all(types.activations is None for types in schemes.values()):
        return QuantizeError("nothing to quantize: no layer has constant float weights")
    listed = float_operators(graph, why)
    first = f": {listed[0]}" if listed else ""
    return QuantizeError(f"nothing to quantize: no operator has a form on integers{first}")


def _report(reports: Mapping[Op, LayerReport], names: Mapping[Op, str]) -> Report:
    """Enter each layer's names, its format and the bytes of its constants."""
    layers = [op for op in names if op in reports]
    short = short_names([names[op] for op in layers])
    for op in layers:
        report = reports[op]
        report.name = names[op]
        report.short = short[names[op]]
        report.bytes_after = stored_bytes(op)
        report.format = word_of(op)
    return Report([reports[op] for op in layers])
