"""``luciole cut``: make other tensors the outputs or inputs of a model.

Operators and inputs that no output needs are removed.

  luciole cut net.tflite -o features.tflite --output pool
  luciole cut net.circle -o net2.circle --input conv1 --output logits --output pool
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from luciole.tools.common.command import FINE, UsageError, add_common, parser_for, run_program
from luciole.tools.surgery.common import add_files, opened, write


def main(argv: Sequence[str] | None = None, program: str = "luciole cut") -> int:
    """Run the program."""
    parser = parser_for(program, __doc__ or "")
    add_files(parser)
    parser.add_argument(
        "--output",
        action="append",
        default=[],
        metavar="TENSOR",
        help="an output of the new model (may be repeated; default: the outputs of the model)",
    )
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="TENSOR",
        help="a tensor that becomes an input, beside those that are still needed",
    )
    add_common(parser)
    return run_program(argv, parser, _run)


def _run(arguments: argparse.Namespace) -> int:
    from luciole.ir.surgery.cut import cut

    if not arguments.output and not arguments.input:
        raise UsageError("say where to cut: --output TENSOR, --input TENSOR")
    model = opened(arguments)
    write(arguments, cut(model, outputs=arguments.output, inputs=arguments.input))
    return FINE
