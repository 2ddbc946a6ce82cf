"""``luciole import``: turn a model of another format into a .circle or .tflite file."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Sequence

from luciole.exporters.writer import writable
from luciole.tools.common import console
from luciole.tools.common.command import FINE, a_model, add_common, parser_for, run_program


def main(argv: Sequence[str] | None = None, program: str = "luciole import") -> int:
    """Run the program."""
    parser = parser_for(program, __doc__ or "")
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help=a_model(),
    )
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="FILE",
        help=f"the {writable()} file to write",
    )
    add_common(parser)
    return run_program(argv, parser, _run)


def _run(arguments: argparse.Namespace) -> int:
    from luciole.exporters import save
    from luciole.importers import load
    from luciole.tools.common.writing import check_output

    check_output(arguments.output)
    model = load(arguments.source)
    size = save(model, arguments.output)
    kinds = Counter(op.kind for graph in model.graphs for op in graph.ops)
    if arguments.json:
        console.print_json(
            {"output": os.fspath(arguments.output), "bytes": size, "operators": dict(kinds)}
        )
        return FINE
    listed = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    console.show(f"{arguments.output}: {console.size_text(size)}, {listed}")
    return FINE
