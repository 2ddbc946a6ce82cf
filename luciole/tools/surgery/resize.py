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
        help="an input's shape, 1,32,32,3 (may be repeated; names may be left out where each "
        "input has one, in their order)",
    )
    add_common(parser)
    return run_program(argv, parser, _run)


def _run(arguments: argparse.Namespace) -> int:
    from luciole.ir.surgery.resize import resize

    model = opened(arguments)
    names = _names(model.graph, arguments.shape)
    shapes = {name: _shape(text) for name, text in zip(names, arguments.shape, strict=True)}
    write(arguments, resize(model, shapes))
    return FINE


def _names(graph: Graph, texts: Sequence[str]) -> list[str]:
    """Read the inputs that texts name, or take all in their order where none is named. Raises
    UsageError for names that are left out of some.
    """
    names = [text.rpartition("=")[0] for text in texts]
    inputs = [value.name for value in graph.inputs]
    if not any(names) and len(texts) == len(inputs):
        return inputs
    for name, text in zip(names, texts, strict=True):
        if not name:
            known = ", ".join(map(repr, inputs))
            raise UsageError(f"--shape is {text!r}: NAME=SHAPE is needed, inputs are {known}")
    return names


def _shape(text: str) -> Shape:
    """Read a shape. Raises UsageError for what is none."""
    extents = text.rpartition("=")[2]
    words = [w.strip() for w in extents.strip().removeprefix("[").removesuffix("]").split(",")]
    if not all(word in ("", "?", "-1") or word.isdecimal() for word in words):
        raise UsageError(f"--shape is {text!r}: a shape is written as 1,32,32,3")
    return tuple(None if word in ("?", "-1") else int(word) for word in words if word)
