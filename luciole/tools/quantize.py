"""``luciole quantize``: give a model's layers fewer bits, learned levels or uniform integers."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from luciole.tools.common import console
from luciole.tools.common.command import (
    DESCRIBE,
    FINE,
    UsageError,
    a_model,
    add_calibration,
    add_common,
    add_custom,
    add_data_bounds,
    add_preprocess,
    parser_for,
    run_program,
)

if TYPE_CHECKING:
    from luciole.interpreter.records import Track
    from luciole.ir import Array, Model
    from luciole.lquantizer import Result, UniformOptions

LEARNED = "learned"
"""The scheme of ``lquantizer``, which has options of its own."""

_EXAMPLE = """examples:
  luciole quantize net.tflite -o q.tflite --scheme int8 --data train.npz:x_train
  luciole quantize net.tflite -o q.tflite --scheme dynamic
"""

_SAME = {"-o": "--output-model", "--output": "--output-model", "--data": "--input-data"}
"""What ``lquantizer`` calls options of this program."""


def main(argv: Sequence[str] | None = None, program: str = "luciole quantize") -> int:
    """Run the program."""
    words = sys.argv[1:] if argv is None else argv
    if _scheme(words) == LEARNED:
        from luciole.tools import lquantizer

        return lquantizer.main(_for_lquantizer(words), program)
    parser = parser_for(program, __doc__ or "")
    parser.epilog = _EXAMPLE
    parser.add_argument("model", metavar="MODEL", help=a_model())
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="the file to write")
    _add_scheme_arguments(parser)
    add_data_bounds(parser)
    add_custom(parser)
    add_common(parser)
    return run_program(words, parser, _run)


def _scheme(words: Sequence[str]) -> str | None:
    """Find what ``--scheme`` says; None where nobody asks for levels but for help."""
    for number, word in enumerate(words):
        name, _, value = word.partition("=")
        if name == "--scheme":
            return value or (words[number + 1] if number + 1 < len(words) else None)
    asks_for_help = not words or words[0] in ("-h", "--help", *DESCRIBE)
    return None if asks_for_help else LEARNED


def _for_lquantizer(words: Sequence[str]) -> list[str]:
    """Say the same in ``lquantizer``'s words."""
    found, rest = [], list(words)
    if rest and not rest[0].startswith("-"):
        found += ["--input-model", rest.pop(0)]
    while rest:
        word = rest.pop(0)
        if word == "--scheme":
            rest.pop(0)
        elif not word.startswith("--scheme="):
            found.append(_SAME.get(word, word))
    return found


def _add_scheme_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--scheme",
        required=True,
        metavar="SCHEME",
        help="learned (as lquantizer, the default), int8, w4a8, int16x8 (all learn from --data), "
        "dynamic, weights, float16",
    )
    parser.add_argument(
        "--data",
        metavar="DATA",
        help="unlabelled records: ONE's HDF5, .npz[:array], .npy, a folder, a list file",
    )
    add_preprocess(parser)
    add_calibration(parser)
    parser.add_argument(
        "--granularity", default="channel", help="scales of weights: channel (default) or tensor"
    )
    parser.add_argument(
        "--ranges",
        default="mse",
        metavar="RULE",
        help="what tensors' integers reach: mse (default), min_max, percentile[:99.99], "
        "moving_average[:0.99], record_percentile[:99]",
    )
    parser.add_argument(
        "--rounding", default="output_aware", help="of weights: output_aware (default) or nearest"
    )
    parser.add_argument(
        "--rescale",
        default="auto",
        help="channels between two layers: auto (default: whatever is best), none, weights, peaks, "
        "equal",
    )
    parser.add_argument(
        "--input-type", default="float32", help="of the file's inputs: float32, int8, uint8, int16"
    )
    parser.add_argument("--output-type", default="float32", help="of its outputs, likewise")
    parser.add_argument("--seed", type=int, default=0, help="seed of everything random (default 0)")
    parser.add_argument("--report", metavar="FILE", help="also write the report as JSON")


def _run(arguments: argparse.Namespace) -> int:
    from luciole import api, exporters
    from luciole.files import check_writable, write_file
    from luciole.tools.common.writing import check_output

    options = _options(arguments)
    check_output(arguments.output)
    if arguments.report:
        check_writable(arguments.report)
    model = api.load(arguments.model)
    records = _records(arguments, model)
    with console.tracked(arguments.json) as track:
        result = _quantized(model, records, options, track)
    if arguments.report:
        write_file(arguments.report, console.to_json(result.report.to_json()))
    exporters.save(result.model, arguments.output)
    _tell(result, arguments)
    return FINE


def _options(arguments: argparse.Namespace) -> UniformOptions:
    """Read the options. Raises QuantizeError for what there is not, UsageError for missing data."""
    from luciole.lquantizer import UniformOptions

    options = UniformOptions(
        scheme=arguments.scheme,
        granularity=arguments.granularity,
        ranges=arguments.ranges,
        rounding=arguments.rounding,
        rescale=arguments.rescale,
        input_type=arguments.input_type,
        output_type=arguments.output_type,
        seed=arguments.seed,
    )
    if options.needs_data and arguments.data is None:
        raise UsageError(f"--scheme {options.scheme} learns from data: give --data")
    if not options.needs_data and arguments.data is not None:
        raise UsageError(f"--scheme {options.scheme} needs no data: leave --data out")
    return options


def _records(arguments: argparse.Namespace, model: Model) -> dict[str, Array] | None:
    from luciole.tools.data import asked_data

    if arguments.data is None:
        return None
    found = asked_data(arguments, model.graph, arguments.data, limit=arguments.calibration)
    return dict(found.records)


def _quantized(
    model: Model, records: dict[str, Array] | None, options: UniformOptions, track: Track
) -> Result:
    from luciole import api

    return api.quantize(model, records, options, track=track)


def _tell(result: Result, arguments: argparse.Namespace) -> None:
    report = result.report
    for warning in report.warnings:
        console.say(f"luciole: warning: {warning}")
    if arguments.json:
        console.print_json(report.to_json())
        return
    title = "signal/noise of each layer's output in dB"
    console.print_table(console.fitted(report.rows()), title)
    if report.floats:
        console.show(f"computed with floats: {', '.join(report.floats)}")
    before, after = console.size_text(report.bytes_before), console.size_text(report.bytes_after)
    console.show(f"{arguments.output}: {before} -> {after} in {report.seconds:.1f} s")
