"""``luciole diff``: measure how far a model is from another one on real data, layer by
layer and at the outputs. Each model computes on what it computed itself, so
errors accumulate as they do in use.

  luciole diff net.circle small.circle --data test.npz
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from luciole.tools.common import console
from luciole.tools.common.apart import Output
from luciole.tools.common.command import (
    FINE,
    UsageError,
    add_common,
    add_custom,
    add_data_bounds,
    add_preprocess,
    parser_for,
    run_program,
)

if TYPE_CHECKING:
    from luciole.interpreter.comparison import Comparison

RANKS = ("relative", "mpeir", "mse", "mae", "tae", "srmse", "largest")
VISQ = ("mpeir", "mse", "tae", "srmse")
PRINTED = ("mae", "mape", "mpeir", "top1", "top5", "mse")


def main(argv: Sequence[str] | None = None, program: str = "luciole diff") -> int:
    """Run the program."""
    parser = parser_for(program, __doc__ or "")
    parser.add_argument("first", metavar="MODEL", help="the reference, say the float model")
    parser.add_argument("second", metavar="OTHER", help="the model that is compared with it")
    parser.add_argument(
        "--data",
        required=True,
        metavar="DATA",
        help="records for the first model: HDF5, .npz[:array], .npy, a folder, a list file; "
        "uint8 and floats are quantized for a quantized input, its own type fed as it is",
    )
    add_preprocess(parser)
    parser.add_argument("--limit", type=int, metavar="N", help="use the first N records")
    parser.add_argument(
        "--by",
        choices=RANKS,
        default="relative",
        metavar="MEASURE",
        help=f"what layers are ranked by: {', '.join(RANKS)} (default: relative, the norm of the "
        "error over the norm of the reference)",
    )
    parser.add_argument(
        "--in-order", action="store_true", help="list layers in the order in which they run"
    )
    parser.add_argument("--top", type=int, metavar="N", help="show the N worst layers only")
    parser.add_argument(
        "--print",
        dest="printed",
        metavar="A,B",
        help="print these measures of the outputs alone, in the lines of ONE's circle-eval-diff: "
        f"{', '.join(PRINTED)}",
    )
    _add_visq(parser)
    add_data_bounds(parser)
    add_custom(parser)
    add_common(parser)
    return run_program(argv, parser, _run)


def _add_visq(parser: argparse.ArgumentParser) -> None:
    for metric in VISQ:
        also = ("--visq",) if metric == "mpeir" else ()
        parser.add_argument(
            *also,
            f"--{metric}-output",
            dest=f"visq_{metric}",
            type=Output,
            metavar="FILE",
            help=f"write each layer's {metric.upper()} as ONE's visq does (JSON)",
        )


def _run(arguments: argparse.Namespace) -> int:
    from luciole.files import check_writable
    from luciole.importers import load
    from luciole.interpreter.compare import compare
    from luciole.tools import diff_report
    from luciole.tools.data import asked_data

    printed = _printed(arguments.printed)
    if arguments.top is not None and arguments.top < 1:
        raise UsageError(f"--top is {arguments.top}, at least 1 is needed")
    targets = {m: vars(arguments)[f"visq_{m}"] for m in VISQ if vars(arguments)[f"visq_{m}"]}
    for path in targets.values():
        check_writable(path)
    first, second = load(arguments.first), load(arguments.second)
    data = asked_data(arguments, first.graph, arguments.data, limit=arguments.limit)
    with console.tracked(arguments.json) as track:
        comparison = compare(first, second, data.records, track("records", data.count))
    _write(targets, comparison, arguments.first)
    if arguments.json:
        console.print_json(diff_report.as_json(comparison, arguments.first, arguments.second))
        return FINE
    if printed:
        diff_report.print_measures(comparison, printed)
        return FINE
    diff_report.print_report(comparison, arguments.by, arguments.in_order, arguments.top)
    return FINE


def _printed(text: str | None) -> list[str]:
    """Read the names of measures. Raises UsageError for another one."""
    names = [] if text is None else [name.strip().lower() for name in text.split(",")]
    for name in names:
        if name not in PRINTED:
            raise UsageError(f"--print has no {name!r}: there are {', '.join(PRINTED)}")
    return names


def _write(targets: dict[str, str], comparison: Comparison, first: str) -> None:
    from luciole.files import write_file
    from luciole.tools import diff_report

    for metric, path in targets.items():
        write_file(path, console.to_json(diff_report.as_visq(comparison, metric, first)))
