"""``luciole run``: run a model over records, and write what it computes of each.

  luciole run net.tflite --data test.npz:x_test -o answers.npz
  luciole run net.circle --data image.raw -o out.raw
  luciole run net.circle --data test.h5 -o out.h5 --output conv1 --output logits

The file's extension says what is written: .npz (arrays by name), .npy (one array), .h5 (ONE's
layout), .raw or .bin (record after record, all results of each in a row); each:PREFIX is a file of
bytes for each result, PREFIX0, PREFIX1, ... Results are what the tensors store: integers of
quantized ones.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from luciole.tools.common import console
from luciole.tools.common.apart import Output
from luciole.tools.common.command import (
    FINE,
    a_model,
    add_common,
    add_custom,
    add_data_bounds,
    add_preprocess,
    check_batch,
    parser_for,
    run_program,
)

if TYPE_CHECKING:
    from luciole.ir import Array


def main(argv: Sequence[str] | None = None, program: str = "luciole run") -> int:
    """Run the program."""
    parser = parser_for(program, __doc__ or "")
    parser.add_argument(
        "model", metavar="MODEL", help=f"{a_model()}, or a .json file that describes parts"
    )
    parser.add_argument(
        "--data",
        required=True,
        metavar="DATA",
        help="records: HDF5, .npz[:array], .npy, .raw, a folder, a list file; "
        "uint8 and floats are quantized for a quantized input, its own type fed as it is",
    )
    parser.add_argument(
        "-o",
        dest="target",
        required=True,
        type=Output,
        metavar="FILE",
        help="the .npz, .npy, .h5 or .raw file",
    )
    parser.add_argument(
        "--output",
        action="append",
        metavar="NAME",
        help="write this tensor, any of the main graph (may be repeated; default: all outputs)",
    )
    parser.add_argument(
        "--batch",
        type=int,
        metavar="N",
        help="run N records at once (default: as many as leave the results as they are one by one)",
    )
    parser.add_argument(
        "--no-compile",
        action="store_true",
        help="let NumPy compute everything: a few records of a network that is run once are ready "
        "before a compiler is",
    )
    add_preprocess(parser)
    parser.add_argument("--limit", type=int, metavar="N", help="use the first N records")
    add_data_bounds(parser)
    add_custom(parser)
    add_common(parser)
    return run_program(argv, parser, _run)


def _run(arguments: argparse.Namespace) -> int:
    from luciole.running import opened, run
    from luciole.tools.data import asked_data
    from luciole.tools.data.results import check_results, write_results

    check_batch(arguments.batch)
    check_results(arguments.target)
    model = opened(arguments.model)
    data = asked_data(arguments, model.graph, arguments.data, limit=arguments.limit)
    with console.tracked(arguments.json) as track:
        results = run(
            model,
            data.records,
            arguments.output,
            batch=arguments.batch,
            compiled=not arguments.no_compile,
            track=track,
        )
    write_results(arguments.target, results)
    _print(arguments, results, data.count)
    return FINE


def _print(arguments: argparse.Namespace, results: Mapping[str, Array], records: int) -> None:
    from luciole.tools.data.load import summary_line

    if arguments.json:
        told = {name: {"dtype": str(a.dtype), "shape": a.shape} for name, a in results.items()}
        console.print_json({"output": arguments.target, "records": records, "results": told})
        return
    console.show(f"{arguments.target}: {records} records")
    for name, array in results.items():
        console.show(summary_line(name, array))
