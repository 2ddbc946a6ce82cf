"""Measure how long a model takes, operator by operator, beside other runtimes.

Flags are those of TFLite's benchmark_model. A sample is the mean of as many runs in a row as take
50 us together; models are measured turn by turn, and ratios are the other's median divided by
the model's: above 1, the model is faster.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from luciole.tools.common import console
from luciole.tools.common.apart import Output
from luciole.tools.common.command import (
    FINE,
    UsageError,
    a_model,
    add_common,
    add_custom,
    add_data_bounds,
    add_labelled,
    check_without_data,
    parser_for,
    run_program,
)
from luciole.tools.common.shapes import parse_closed_shapes

if TYPE_CHECKING:
    from luciole.tools.bench.report import Report

NOISY = 0.1
"""Distance between the quartiles, as a share of the median, from which on people are told."""

LEAST = {
    "num_threads": 1,
    "num_runs": 1,
    "min_secs": 0,
    "max_secs": 0,
    "warmup_runs": 0,
    "warmup_min_secs": 0,
    "seed": 0,
}
"""The least that options may be."""


def main(argv: Sequence[str] | None = None, program: str = "circle-bench") -> int:
    """Run the program."""
    return run_program(argv, parser(program), _run)


def parser(program: str) -> argparse.ArgumentParser:
    """Declare the program's arguments."""
    made = parser_for(program, __doc__ or "")
    made.add_argument("model", nargs="?", metavar="MODEL", help=a_model())
    made.add_argument("--graph", metavar="MODEL", help="the same, as benchmark_model has it")
    made.add_argument(
        "--against",
        action="append",
        default=[],
        metavar="[RUNTIME:]FILE",
        help="also measure a model run by luciole, or by litert:, onnxruntime: or onert: "
        "(may be given several times)",
    )
    made.add_argument(
        "--cpu",
        metavar="LEVEL",
        help="compile the kernels for less than this machine has, as LUCIOLE_CPU does: x86-64, "
        "x86-64-v2, x86-64-v3 or x86-64-v4, with features behind it (x86-64-v4,+avx512vnni); "
        "other runtimes go on using all it has",
    )
    _add_inputs(made)
    _add_limits(made)
    made.add_argument(
        "--enable-op-profiling",
        choices=("true", "false"),
        default="true",
        help="whether to time every operator (default true)",
    )
    made.add_argument("--csv", type=Output, metavar="FILE", help="write the operators' times")
    made.add_argument(
        "--trace", type=Output, metavar="FILE", help="write a trace for Chrome or Perfetto"
    )
    add_data_bounds(made)
    add_custom(made)
    add_common(made)
    return made


def _add_inputs(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "--data",
        metavar="DATA",
        help="records to run on, with labels also for accuracy: HDF5, .npz[:array], .npy, a "
        "folder; uint8 and floats are quantized for a quantized input, its own type fed as it is",
    )
    add_labelled(made)
    made.add_argument(
        "--input-shape",
        "--input-layer-shape",
        type=parse_closed_shapes,
        default=(),
        metavar="SHAPES",
        help="shapes of all inputs in order, such as 64,784 or 1,28,28:1,10",
    )
    made.add_argument(
        "--seed", type=int, default=0, metavar="N", help="the seed of random inputs (default 0)"
    )


def _add_limits(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "--num-threads",
        type=int,
        default=1,
        metavar="N",
        help="threads of each runtime (default 1)",
    )
    made.add_argument(
        "--num-runs",
        type=int,
        default=50,
        metavar="N",
        help="the least number of runs (default 50)",
    )
    made.add_argument(
        "--min-secs",
        type=float,
        default=1.0,
        metavar="S",
        help="the least seconds for each figure (default 1)",
    )
    made.add_argument(
        "--max-secs",
        type=float,
        default=150.0,
        metavar="S",
        help="seconds at most, for all of them together (default 150)",
    )
    _add_warm_up(made)


def _add_warm_up(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "--warmup-runs",
        type=int,
        default=1,
        metavar="N",
        help="untimed runs at the beginning (default 1)",
    )
    made.add_argument(
        "--warmup-min-secs",
        type=float,
        default=0.5,
        metavar="S",
        help="the least seconds of untimed runs (default 0.5)",
    )


def check(arguments: argparse.Namespace) -> None:
    """Refuse before long work options that do not go together, and files that cannot be written."""
    from luciole.files import check_writable

    if (arguments.model is None) == (arguments.graph is None):
        raise UsageError("give one model to measure, as MODEL or as --graph MODEL")
    for name, least in LEAST.items():
        if not vars(arguments)[name] >= least:  # NaN is not
            raise UsageError(
                f"--{name.replace('_', '-')} is {vars(arguments)[name]}, at least {least} is needed"
            )
    if arguments.data is None:
        check_without_data(arguments, "labels", "ignore_label", "preprocess", "limit")
    if arguments.csv and arguments.enable_op_profiling == "false":
        raise UsageError("--csv holds operators: it needs --enable-op-profiling=true")
    for path in filter(None, (arguments.csv, arguments.trace)):
        check_writable(path)


def _run(arguments: argparse.Namespace) -> int:
    check(arguments)
    _hold_to(arguments.cpu)
    begun = time.perf_counter_ns()
    from luciole.tools.bench.session import benchmark

    with console.tracked(arguments.json) as track:
        report = benchmark(arguments, begun, track)
    if report.ours.invoke.spread > NOISY:
        console.say(
            f"note: half of the samples are {100 * report.ours.invoke.spread:.0f} % apart: "
            "something else runs, or the clock changes"
        )
    for line in report.lost:
        console.say(f"luciole: warning: {line}")
    _write(report, arguments)
    return FINE


def _hold_to(level: str | None) -> None:
    """Compile for a level from now on. Raises UsageError where another was chosen in this process,
    and LucioleError for what is no level.
    """
    if level is None:
        return
    if "luciole.kernels.jit" in sys.modules and os.environ.get("LUCIOLE_CPU") != level:
        raise UsageError(f"--cpu is {level}, but kernels of this process are made for another")
    os.environ["LUCIOLE_CPU"] = level


def _write(report: Report, arguments: argparse.Namespace) -> None:
    from luciole.files import write_file
    from luciole.tools.bench.report import chrome_trace, operators_csv
    from luciole.tools.bench.tables import print_report

    if arguments.csv:
        write_file(arguments.csv, operators_csv(report.operators))
    if arguments.trace:
        write_file(arguments.trace, chrome_trace(report))
    if arguments.json:
        console.print_json(report.to_json())
    else:
        print_report(report)
