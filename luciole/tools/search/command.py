"""``luciole search``: find the best files of every size, with bits chosen for each layer.

The search measures each layer alone, tries whole networks on short fits, and writes those that no
other network beats. The same command continues an earlier search.

  luciole search model.tflite --data train.npz:x_train --evaluations 180 -o front/
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from luciole.tools.common import console
from luciole.tools.common.command import (
    FINE,
    UsageError,
    a_model,
    add_common,
    add_custom,
    add_data_bounds,
    add_metric,
    add_preprocess,
    byte_count,
    parser_for,
    run_program,
)
from luciole.tools.search.preset import add_preset, check_preset, seed_options

if TYPE_CHECKING:
    from luciole.lquantizer.search.options import SearchOptions
    from luciole.lquantizer.search.published.options import SeedOptions
    from luciole.lquantizer.search.result import SearchResult


def main(argv: Sequence[str] | None = None, program: str = "luciole search") -> int:
    """Run the program."""
    parser = parser_for(program, __doc__ or "")
    parser.add_argument("model", metavar="MODEL", help=a_model())
    parser.add_argument(
        "--data",
        required=True,
        metavar="DATA",
        help="unlabelled records, in the forms that lquantizer takes",
    )
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="FOLDER",
        help="the folder of the files and of search.db",
    )
    _add_goal(parser)
    _add_space(parser)
    _add_work(parser)
    add_preset(parser)
    add_preprocess(parser)
    add_data_bounds(parser)
    add_custom(parser)
    add_common(parser)
    return run_program(argv, parser, _run)


def _add_goal(parser: argparse.ArgumentParser) -> None:
    goal = parser.add_argument_group("goals")
    goal.add_argument(
        "--objectives",
        default="accuracy,size",
        metavar="NAMES",
        help="accuracy and some of size, latency and latency:DEVICE (default accuracy,size)",
    )
    goal.add_argument(
        "--device",
        action="append",
        default=[],
        dest="devices",
        metavar="FILE",
        help="what operators cost on another machine, for the objective latency:NAME: a JSON file, "
        "or one of cortex-m0plus and cortex-m4",
    )
    goal.add_argument(
        "--max-size", type=byte_count, metavar="SIZE", help="the most bytes of a file, such as 60KB"
    )
    goal.add_argument(
        "--max-us",
        type=float,
        metavar="US",
        help="the longest time of a file: the sum of its operators' microseconds",
    )
    goal.add_argument(
        "--target-drop",
        type=float,
        metavar="POINTS",
        help="the largest loss of a file: points of the answers that change, with --labels of "
        "right answers, without classes percent of the variance, with --metric in its unit",
    )
    goal.add_argument(
        "--labels",
        metavar="NAME",
        help="an array of the data file or FILE, to judge by; --preset seed trains to them, too",
    )
    add_metric(goal)
    goal.add_argument(
        "--files", type=int, default=12, metavar="N", help="the most files to write (default 12)"
    )


def _add_space(parser: argparse.ArgumentParser) -> None:
    space = parser.add_argument_group("formats of layers")
    space.add_argument(
        "--options",
        metavar="NAMES",
        help="of levels:w1a1 to levels:w4a8, float and other formats such as dynamic:int8, "
        "int:w8a8, float16 (default: all learned levels, int:w1a8 to int:w8a8, dynamic:int8, "
        "dynamic:int4, float)",
    )
    space.add_argument(
        "--tie",
        action="append",
        default=[],
        metavar="PATTERN",
        help="layers (a shell pattern) that all get the same format",
    )
    space.add_argument(
        "--fixed",
        action="append",
        default=[],
        metavar="PATTERN=OPTION",
        help="the format of the layers that a shell pattern names",
    )


def _add_work(parser: argparse.ArgumentParser) -> None:
    work = parser.add_argument_group("work")
    work.add_argument(
        "--evaluations",
        type=int,
        metavar="N",
        help="the number of networks that are fitted and measured",
    )
    work.add_argument(
        "--minutes",
        type=float,
        metavar="M",
        help="the time until nothing more is tried, after which the front is fitted (default 10 "
        "without --evaluations)",
    )
    work.add_argument(
        "--workers", type=int, default=1, metavar="N", help="the number of processes (default 1)"
    )
    work.add_argument(
        "--cluster", metavar="ADDRESS", help="the address of a Dask scheduler, tcp://host:8786"
    )
    work.add_argument(
        "--calibration", type=int, default=500, metavar="N", help="records to fit (default 500)"
    )
    work.add_argument(
        "--judges", type=int, default=1000, metavar="N", help="records that judge (default 1000)"
    )
    work.add_argument(
        "--finish",
        default="fit",
        metavar="HOW",
        help="how the files of the front are made: fit (default), or finetune:EPOCHS without "
        "labels on all records that do not judge; finetune:EPOCHS,mirror mirrors images at random",
    )
    work.add_argument(
        "--seed", type=int, default=0, help="the seed of all random numbers (default 0)"
    )


def _run(arguments: argparse.Namespace) -> int:
    from luciole import api
    from luciole.tools.data import asked_data

    options = _options(arguments)
    model = api.load(arguments.model)
    data = asked_data(arguments, model.graph, arguments.data, labels=arguments.labels)
    labels = data.labels if arguments.labels else None
    with console.tracked(arguments.json) as track:
        folder = Path(arguments.output)
        source = arguments.model if arguments.preset else model
        searched = api.search(
            source,
            data.records,
            folder,
            options,
            labels=labels,
            metric=arguments.metric,
            say=console.say,
            track=track,
        )
    _write_reports(folder, searched, arguments.model)
    _tell(searched, arguments)
    return FINE


def _options(arguments: argparse.Namespace) -> SearchOptions | SeedOptions:
    """Read the options of a search. Raises UsageError for unknown ones."""
    from luciole.lquantizer.errors import QuantizeError

    check_preset(arguments)
    try:
        if arguments.preset:
            return seed_options(arguments, _fixed(arguments.fixed))
        return _search_options(arguments)
    except QuantizeError as error:
        raise UsageError(str(error)) from None


def _search_options(arguments: argparse.Namespace) -> SearchOptions:
    from luciole.lquantizer.search.options import SearchOptions
    from luciole.lquantizer.search.space import OPTIONS

    names = ("max_size", "max_us", "target_drop", "evaluations", "minutes")
    limits = {n: getattr(arguments, n) for n in names}
    rest = ("files", "calibration", "judges", "seed", "workers", "cluster", "finish")
    limits |= {name: getattr(arguments, name) for name in rest}
    options = OPTIONS if arguments.options is None else tuple(arguments.options.split(","))
    return SearchOptions(
        objectives=tuple(arguments.objectives.split(",")),
        options=options,
        tied=tuple(arguments.tie),
        devices=tuple(arguments.devices),
        fixed=_fixed(arguments.fixed),
        **limits,
    )


def _fixed(entries: Sequence[str]) -> dict[str, str]:
    options = {}
    for entry in entries:
        pattern, equals, option = entry.rpartition("=")
        if not equals:
            raise UsageError(f"--fixed {entry}: PATTERN=OPTION is needed")
        options[pattern] = option
    return options


def _write_reports(folder: Path, searched: SearchResult, model: str) -> None:
    from luciole.files import filling
    from luciole.tools.search.inside import write_pages
    from luciole.tools.search.page import page
    from luciole.tools.search.tables import csv_of

    with filling(folder) as fill:
        fill("report.json", console.to_json(searched.to_json()))
        fill("front.csv", csv_of(searched))
        write_pages(searched, fill)
        fill("report.html", page(searched, Path(model).name))


def _tell(searched: SearchResult, arguments: argparse.Namespace) -> None:
    if arguments.json:
        console.print_json(searched.to_json())
        return
    console.print_table(searched.rows())
    count = len(searched.evaluated)
    console.show(f"{count} evaluated, {searched.failed} failed; files in {arguments.output}")
