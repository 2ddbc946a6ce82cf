"""``lquantizer``: learn 1 to 4 bit levels for the dense layers of a model file from unlabelled
data.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from luciole.tools import console
from luciole.tools.command import FINE, UsageError, add_common, parser_for, run_program

if TYPE_CHECKING:
    from luciole.lquantizer import Result

_EXAMPLE = """example:
  lquantizer --input_model model.circle --output_model answer.circle \\
             --input_data train.hdf5 --encode_bits 3
"""


def main(argv: Sequence[str] | None = None, program: str = "lquantizer") -> int:
    """Run the program."""
    parser = parser_for(program, __doc__ or "")
    parser.epilog = _EXAMPLE
    needed = parser.add_argument_group("files")
    needed.add_argument(
        "--input-model", required=True, metavar="FILE", help="a .circle, .tflite or Keras model"
    )
    needed.add_argument(
        "--output-model", required=True, metavar="FILE", help="the .circle file to write"
    )
    needed.add_argument(
        "--input-data",
        required=True,
        metavar="DATA",
        help="unlabelled records: ONE's HDF5, .npz[:array], .npy, a folder, a list file",
    )
    needed.add_argument("--report", metavar="FILE", help="also write the report as JSON")
    _add_width_arguments(parser)
    _add_fit_arguments(parser)
    add_common(parser)
    return run_program(argv, parser, _run)


def _add_width_arguments(parser: argparse.ArgumentParser) -> None:
    widths = parser.add_argument_group("widths")
    widths.add_argument(
        "--encode-bits", type=int, metavar="1-4", help="bits of inputs and weights (default 3)"
    )
    widths.add_argument(
        "--input-bits", type=int, metavar="1-8", help="bits of inputs, where they differ"
    )
    widths.add_argument(
        "--weight-bits", type=int, metavar="1-4", help="bits of weights, where they differ"
    )
    widths.add_argument(
        "--recipe", metavar="FILE.json", help="choices for single layers: bits or skip"
    )


def _add_fit_arguments(parser: argparse.ArgumentParser) -> None:
    fit = parser.add_argument_group("data and fit")
    fit.add_argument(
        "--preprocess", metavar="EXPR", help='arithmetic on the records, for example "x/255"'
    )
    fit.add_argument(
        "--calibration", type=int, metavar="N", help="use the first N records (default: all)"
    )
    fit.add_argument(
        "--update",
        choices=("gradient", "least_squares"),
        default="gradient",
        help="how bases move: the published gradient steps, or solved at once (default gradient)",
    )
    fit.add_argument(
        "--initialisation",
        choices=("random", "greedy"),
        default="random",
        help="first bases (default random)",
    )
    fit.add_argument(
        "--seed", type=int, default=0, help="seed of the random first bases (default 0)"
    )


def _run(arguments: argparse.Namespace) -> int:
    from luciole import api, exporters
    from luciole.lquantizer import Settings
    from luciole.tools.data import load_data

    encode_bits = 3 if arguments.encode_bits is None else arguments.encode_bits
    if not 1 <= encode_bits <= 4:
        raise UsageError(f"--encode_bits is {encode_bits}: 1 to 4 are possible")
    model = api.load(arguments.input_model)
    exporters.check_target(arguments.output_model)
    data = load_data(
        arguments.input_data,
        model.graph,
        limit=arguments.calibration,
        preprocess=arguments.preprocess,
    )
    for line in data.summary():
        console.say(f"data: {line}")
    settings = Settings(arguments.update, arguments.initialisation, seed=arguments.seed)
    with console.tracked(arguments.json) as track:
        result = api.quantize(
            model,
            data.records,
            encode_bits=encode_bits,
            input_bits=arguments.input_bits,
            weight_bits=arguments.weight_bits,
            recipe=arguments.recipe,
            settings=settings,
            track=track,
        )
    exporters.save(result.model, arguments.output_model)
    _tell(result, arguments)
    return FINE


def _tell(result: Result, arguments: argparse.Namespace) -> None:
    from luciole.exporters import write_file

    report = result.report
    for warning in report.warnings:
        console.say(f"luciole: warning: {warning}")
    if arguments.report:
        write_file(arguments.report, console.to_json(report.to_json()))
    if arguments.json:
        console.print_json(report.to_json())
        return
    console.print_table(report.rows())
    before, after = console.size_text(report.bytes_before), console.size_text(report.bytes_after)
    print(f"{arguments.output_model}: {before} -> {after} in {report.seconds:.1f} s")
