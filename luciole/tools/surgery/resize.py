"""``luciole resize``: give inputs other shapes, and infer all other shapes from them.

``?`` leaves a dimension open. A shape that an operator does not take is refused.

  luciole resize net.tflite -o net4.tflite --shape 4,224,224,3
  luciole resize net.circle -o out.circle --shape image=1,128,128,3 --shape mask=1,128,128
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from luciole.tools.common.command import FINE, UsageError, add_common, parser_for, run_program
from luciole.tools.common.shapes import parse_shape
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
        type=_shape,
        metavar="[NAME=]SHAPE",
        help="an input's shape, 1,32,32,3 (may be repeated; names may be left out where each "
        "input has one, in their order)",
    )
    add_common(parser)
    return run_program(argv, parser, _run)


def _run(arguments: argparse.Namespace) -> int:
    from luciole.ir.surgery.resize import resize

    model = opened(arguments)
    write(arguments, resize(model, _by_input(model.graph, arguments.shape)))
    return FINE


def _by_input(graph: Graph, shapes: Sequence[tuple[str, Shape]]) -> dict[str, Shape]:
    """Return shapes by input, which they name, or all inputs' in their order where none is named.
    Raises UsageError for names that are left out of some.
    """
    inputs = [value.name for value in graph.inputs]
    if not any(name for name, _ in shapes) and len(shapes) == len(inputs):
        return {name: shape for name, (_, shape) in zip(inputs, shapes, strict=True)}
    for name, shape in shapes:
        if not name:
            from luciole.ir.value import shape_text

            known = ", ".join(map(repr, inputs))
            shown = shape_text(shape)
            raise UsageError(f"--shape is {shown}: NAME=SHAPE is needed, inputs are {known}")
    return dict(shapes)


def _shape(text: str) -> tuple[str, Shape]:
    """Read ``[NAME=]SHAPE``. Raises ArgumentTypeError."""
    name, _, shape = text.rpartition("=")
    return name, parse_shape(shape)
