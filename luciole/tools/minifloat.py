"""``luciole quantize --scheme minifloat``: let a model compute with floats of a few bits."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING

from luciole.tools.common import console
from luciole.tools.common.command import (
    UsageError,
    a_model,
    add_calibration,
    add_common,
    add_custom,
    add_data_bounds,
    add_metric,
    add_preprocess,
    parser_for,
    run_program,
)
from luciole.tools.proving.files import show_judged, write_proved
from luciole.tools.proving.options import add_proof, asked_metric, asked_split

if TYPE_CHECKING:
    from luciole.interpreter.records import Track
    from luciole.ir import Model
    from luciole.lquantizer import MinifloatOptions, Report, Result
    from luciole.lquantizer.judging.metric import Metric
    from luciole.lquantizer.judging.records import Split

_EXAMPLE = """examples:
  luciole quantize net.tflite -o q.circle --scheme minifloat --exponent 5 --mantissa 5
  luciole quantize net.tflite -o q.circle --scheme minifloat --search --data train.npz:x_train
"""


def main(argv: Sequence[str], program: str = "luciole quantize") -> int:
    """Run the program."""
    parser = parser_for(program, __doc__ or "")
    parser.epilog = _EXAMPLE
    parser.add_argument("model", metavar="MODEL", help=a_model())
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="the file to write")
    parser.add_argument("--scheme", metavar="SCHEME", help="minifloat, or a word: minifloat:4,4")
    for group in (_add_number_arguments, _add_search_arguments, _add_data_arguments):
        group(parser)
    parser.add_argument("--report", metavar="FILE", help="also write the report as JSON")
    add_proof(parser)
    add_custom(parser)
    add_common(parser)
    return run_program(argv, parser, _run)


def _add_number_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--exponent", type=int, metavar="BITS", help="bits of exponents, 2 to 7")
    parser.add_argument("--mantissa", type=int, metavar="BITS", help="bits of mantissas, 1 to 16")
    what = "a power of two for each tensor, learned from --data"
    parser.add_argument("--scaled", action="store_true", help=what)
    what = "round what layers read, not what every operator gives"
    parser.add_argument("--layers-only", action="store_true", help=what)


def _add_search_arguments(parser: argparse.ArgumentParser) -> None:
    what = "try numbers of bits and take the fewest that lose at most --target-drop"
    parser.add_argument("--search", action="store_true", help=what)
    what = (
        "what may be lost (default 1 point of the answers that change; with --labels of right "
        "ones, without classes percent of the variance, with --metric in its unit)"
    )
    parser.add_argument("--target-drop", type=float, metavar="POINTS", help=what)
    what = "then take bits from single layers as well"
    parser.add_argument("--per-layer", action="store_true", help=what)


def _add_data_arguments(parser: argparse.ArgumentParser) -> None:
    what = "records: ONE's HDF5, .npz[:array], .npy, a folder, a list file"
    parser.add_argument("--data", metavar="DATA", help=what)
    parser.add_argument("--labels", metavar="DATA", help="their labels, for a search or a metric")
    add_metric(parser)
    add_preprocess(parser)
    add_calibration(parser)
    add_data_bounds(parser)


def _run(arguments: argparse.Namespace) -> int:
    from luciole import api
    from luciole.files import check_writable, write_file
    from luciole.tools.common.writing import check_output

    options, metric = _options(arguments), asked_metric(arguments)
    check_output(arguments.output)
    if arguments.report:
        check_writable(arguments.report)
    model = api.load(arguments.model)
    split = None
    if arguments.data is not None:
        split = asked_split(arguments, model.graph, arguments.data, arguments.labels)
    begun = perf_counter()
    with console.tracked(arguments.json) as track:
        result = _quantized(model, split, options, metric, track)
    judges = None if split is None else split.judges
    code = write_proved(result, model, judges, arguments.output, arguments, metric)
    result.report.seconds = perf_counter() - begun
    if arguments.report:
        write_file(arguments.report, console.to_json(result.report.to_json()))
    _tell(result, arguments)
    return code


def _options(arguments: argparse.Namespace) -> MinifloatOptions:
    """Read the options. Raises QuantizeError for what does not go together, UsageError for data
    that are missing or that nothing reads.
    """
    from luciole.lquantizer import MinifloatOptions

    for name in ("target_drop", "per_layer", "labels"):
        is_judged = name == "labels" and arguments.metric is not None
        if getattr(arguments, name) and not arguments.search and not is_judged:
            raise UsageError(f"--{name.replace('_', '-')} goes with --search")
    if arguments.search and arguments.metric is not None and arguments.target_drop is None:
        raise UsageError("--metric has a unit of its own: give --target-drop in it")
    target = arguments.target_drop if arguments.target_drop is not None else 1.0
    options = MinifloatOptions(
        *_bits(arguments),
        arguments.scaled,
        arguments.layers_only,
        target if arguments.search else None,
        arguments.per_layer,
    )
    if options.needs_data and arguments.data is None:
        raise UsageError("--scaled and --search learn from data: give --data")
    return options


def _bits(arguments: argparse.Namespace) -> tuple[int | None, int | None]:
    """Read the bits of exponent and mantissa: from their options, or else from the scheme."""
    from luciole.lquantizer.assignment.layer_format import Minifloat
    from luciole.lquantizer.assignment.options import format_named

    exponent, mantissa = arguments.exponent, arguments.mantissa
    format = format_named(arguments.scheme or "")
    if not isinstance(format, Minifloat):
        return exponent, mantissa
    return (
        format.exponent if exponent is None else exponent,
        format.mantissa if mantissa is None else mantissa,
    )


def _quantized(
    model: Model,
    split: Split | None,
    options: MinifloatOptions,
    metric: Metric | None,
    track: Track,
) -> Result:
    """Round the model's numbers; without ``--scaled`` and ``--search`` records only judge."""
    from luciole import api

    used = split if options.needs_data else None
    records = None if used is None else used.learned
    labels = None if used is None else used.labels
    return api.quantize(
        model, records, options, labels=labels, metric=metric, proof=False, track=track
    )


def _tell(result: Result, arguments: argparse.Namespace) -> None:
    report = result.report
    for warning in report.warnings:
        console.say(f"luciole: warning: {warning}")
    if arguments.json:
        console.print_json(report.to_json())
        return
    if report.options:
        console.print_table(_grid(report), f"lost: {_unit(report)}")
    rows = [(layer.short, layer.format, f"{layer.bytes_after:,}") for layer in report.layers]
    console.print_table(console.fitted([("layer", "format", "bytes of constants"), *rows]))
    if not show_judged(report):
        return
    console.show(f"{arguments.output}: {_sizes(report)} in {report.seconds:.1f} s")


def _unit(report: Report) -> str:
    """Name the unit that a search counted in."""
    return "" if report.judged is None else report.judged.unit


def _sizes(report: Report) -> str:
    return " -> ".join(console.size_text(n) for n in (report.bytes_before, report.bytes_after))


def _grid(report: Report) -> list[tuple[str, ...]]:
    """Lay out what was tried: a row for each number of bits of the exponent."""
    drops = {(int(o["exponent"]), int(o["mantissa"])): float(o["drop"]) for o in report.options}
    exponents, mantissas = (sorted({pair[i] for pair in drops}, reverse=True) for i in (0, 1))
    head = ("exponent", *(f"mantissa {m}" for m in mantissas))
    return [head, *(_row(drops, e, mantissas) for e in exponents)]


def _row(
    drops: dict[tuple[int, int], float], exponent: int, mantissas: list[int]
) -> tuple[str, ...]:
    found = [drops.get((exponent, m)) for m in mantissas]
    shown = [
        "" if d is None else f"{1 + exponent + m} bits {d:.2f}"
        for d, m in zip(found, mantissas, strict=True)
    ]
    return (str(exponent), *shown)
