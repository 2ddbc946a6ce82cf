"""``luciole resize``: other shapes of inputs, and those that follow from them.

An extent is left open by ``?``. What an operator does not take is said.

  luciole resize net.tflite -o net4.tflite --shape 4,224,224,3
  luciole resize net.circle -o out.circle --shape image=1,128,128,3 --shape mask=1,128,128
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from luciole.tools.common.command import FINE, UsageError, add_common, parser_for, run_program
from luciole.tools.surgery.common import add_files, opened, write

if TYPE_CHECKING:
    from luciole.ir import Graph, Shape


def main(argv: Sequence[str] | None = None, program: str = "luciole resize") -> int:
    """Run the program."""
    parser = parser_for(program, __doc__ or "")
    add_files(parser)
    parser.add_argument(
        "--shape",
        action="append",
        required=True,
        metavar="[NAME=]SHAPE",
        help="an input's shape, 1,32,32,3 (may be repeated; the name may be left out of a model "
        "with one input)",
    )
    add_common(parser)
    return run_program(argv, parser, _run)


def _run(arguments: argparse.Namespace) -> int:
    from luciole.ir.surgery.resize import resize

    model = opened(arguments)
    shapes = dict(_shape(model.graph, text) for text in arguments.shape)
    write(arguments, resize(model, shapes))
    return FINE


def _shape(graph: Graph, text: str) -> tuple[str, Shape]:
    """Read an input's name and shape. Raises UsageError for what is neither."""
    name, _, extents = text.rpartition("=")
    if not name and len(graph.inputs) != 1:
        names = ", ".join(repr(value.name) for value in graph.inputs)
        raise UsageError(f"--shape is {text!r}: NAME=SHAPE is needed, inputs are {names}")
    words = [w.strip() for w in extents.strip().removeprefix("[").removesuffix("]").split(",")]
    if not all(word in ("", "?", "-1") or word.isdecimal() for word in words):
        raise UsageError(f"--shape is {text!r}: a shape is written as 1,32,32,3")
    shape = tuple(None if word in ("?", "-1") else int(word) for word in words if word)
    return name or graph.inputs[0].name, shape
