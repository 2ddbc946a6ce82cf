"""``luciole split``: split a model into parts that run one after the other.

The .json file says which tensors connect the parts, as that of ONE's circle-partitioner does; a
model for each part lies beside it. `luciole run` takes the .json file as a model.
A partition file, as ONE reads it, says which operators belong to one backend.

  luciole split net.tflite -o net.conn.json --at conv5 --at pool
  luciole split net.circle --partition net.part
  luciole run net.conn.json --data test.npz -o answers.npz
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from luciole.tools.common import console
from luciole.tools.common.apart import Output
from luciole.tools.common.command import (
    FINE,
    UsageError,
    a_model,
    add_common,
    parser_for,
    run_program,
)
from luciole.tools.surgery.common import described, show_ends

if TYPE_CHECKING:
    from luciole.surgery import Parts


def main(argv: Sequence[str] | None = None, program: str = "luciole split") -> int:
    """Run the program."""
    parser = parser_for(program, __doc__ or "")
    parser.add_argument("model", metavar="MODEL", help=a_model())
    parser.add_argument(
        "-o",
        dest="target",
        type=Output,
        metavar="FILE",
        help="the .json file to write (default: MODEL.conn.json beside the model)",
    )
    parser.add_argument(
        "--at",
        action="append",
        metavar="TENSOR",
        help="a part ends where this tensor is computed (may be repeated)",
    )
    parser.add_argument(
        "--partition",
        metavar="FILE",
        help="a partition file: backends of operators, by kind or name",
    )
    parser.add_argument(
        "--default", metavar="BACKEND", help="the backend of all other operators, with --partition"
    )
    add_common(parser)
    return run_program(argv, parser, _run)


def _run(arguments: argparse.Namespace) -> int:
    from luciole.exporters.writer import writers
    from luciole.files import check_writable

    if arguments.target is None:
        arguments.target = str(Path(arguments.model).with_suffix(".conn.json"))
    if Path(arguments.target).suffix.lower() != ".json":
        raise UsageError(f"{arguments.target}: parts are described in a .json file")
    check_writable(arguments.target)
    parts = _parts(arguments)
    own = Path(arguments.model).suffix.lower()
    extension = own if own in [writer.extension for writer in writers()] else ".circle"
    files = parts.save(arguments.target, source=arguments.model, extension=extension)
    _print(arguments, parts, files)
    return FINE


def _parts(arguments: argparse.Namespace) -> Parts:
    from luciole.importers import load
    from luciole.surgery import partition, split

    if bool(arguments.at) == bool(arguments.partition):
        raise UsageError("say what parts there are: --at TENSOR or --partition FILE")
    if arguments.partition:
        return partition(arguments.model, arguments.partition, default=arguments.default)
    if arguments.default is not None:
        raise UsageError("--default goes with --partition FILE")
    model = load(arguments.model)
    return split(model, arguments.at)


def _print(arguments: argparse.Namespace, parts: Parts, files: Sequence[Path]) -> None:
    pairs = list(zip(files, parts.models, strict=True))
    if arguments.json:
        told = [{"output": str(file), **described(model)} for file, model in pairs]
        console.print_json({"output": arguments.target, "parts": told})
        return
    console.show(f"{arguments.target}: {len(files)} parts")
    for file, model in pairs:
        console.show(f"{file}: {sum(len(graph.ops) for graph in model.graphs)} operators")
        show_ends(model)
