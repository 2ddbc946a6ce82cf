"""``circle-dump``: print everything a model file holds, as Samsung ONE's circledump does or as
JSON.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from luciole.tools import console
from luciole.tools.command import FINE, add_common, parser_for, run_program

if TYPE_CHECKING:
    from luciole.ir import Model
    from luciole.schema.dialect import Dialect


def main(argv: Sequence[str] | None = None, program: str = "circle-dump") -> int:
    """Run the program."""
    parser = parser_for(program, __doc__ or "")
    parser.add_argument(
        "model", metavar="MODEL", help="a .circle, .tflite or Keras model; - reads standard input"
    )
    add_common(parser)
    return run_program(argv, parser, _run)


def _run(arguments: argparse.Namespace) -> int:
    from luciole.ir import text

    model, dialect = _read(arguments.model)
    if arguments.json:
        console.print_json(text.describe(model, arguments.model, dialect))
        return FINE
    for line in text.dump_lines(model, arguments.model, dialect):
        print(line)
    return FINE


def _read(path: str) -> tuple[Model, Dialect]:
    """The model, also where ``verify`` would refuse it: looking is how people find out why."""
    from pathlib import Path

    from luciole.importers import files, import_model
    from luciole.schema.dialect import CIRCLE
    from luciole.schema.reader import dialect_of

    if path == "-":
        data = sys.stdin.buffer.read()
        return import_model(data)[0], dialect_of(data) or CIRCLE
    model, _ = files.load_with_findings(path)
    known = dialect_of(files.map_file(Path(path))) if files.is_flatbuffer(Path(path)) else None
    return model, known or CIRCLE
