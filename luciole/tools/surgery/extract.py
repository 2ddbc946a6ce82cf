"""``luciole extract``: write some operators of a model as a model of their own.

Options choose operators by number, name or kind, or between two tensors; several options add up.
Tensors that these operators read and others compute become inputs, tensors that others read become
outputs. `luciole dump` shows numbers, names and kinds.

  luciole extract net.circle -o layers.circle --number 3-7,12
  luciole extract net.tflite -o head.tflite --from pool --to logits
  luciole extract net.circle -o block.circle --name "block1/*" --kind ADD
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from itertools import chain

from luciole.tools.common.command import FINE, UsageError, add_common, parser_for, run_program
from luciole.tools.surgery.common import add_files, opened, write


def main(argv: Sequence[str] | None = None, program: str = "luciole extract") -> int:
    """Run the program."""
    parser = parser_for(program, __doc__ or "")
    add_files(parser)
    parser.add_argument(
        "--number", action="append", default=[], metavar="3-7,12", help="operators by their numbers"
    )
    parser.add_argument(
        "--name",
        action="append",
        default=[],
        metavar="PATTERN",
        help="operators by a result's name, or neighbouring parts of it (shell pattern)",
    )
    parser.add_argument(
        "--kind", action="append", default=[], metavar="KIND", help="operators by kind: CONV_2D"
    )
    parser.add_argument(
        "--from", dest="start", metavar="TENSOR", help="operators that depend on this tensor"
    )
    parser.add_argument(
        "--to", dest="end", metavar="TENSOR", help="operators that this tensor needs"
    )
    add_common(parser)
    return run_program(argv, parser, _run)


def _run(arguments: argparse.Namespace) -> int:
    from luciole.ir.surgery.extract import extract

    ranges = [numbers for text in arguments.number for numbers in _ranges(text)]
    ends = (arguments.start, arguments.end)
    if not (ranges or arguments.name or arguments.kind or any(e is not None for e in ends)):
        raise UsageError("choose operators: --number, --name, --kind, --from or --to")
    model = opened(arguments)
    part = extract(
        model,
        numbers=chain.from_iterable(ranges),
        names=arguments.name,
        kinds=arguments.kind,
        start=arguments.start,
        end=arguments.end,
    )
    write(arguments, part)
    return FINE


def _ranges(text: str) -> Iterator[range]:
    """Read numbers and ranges, ``3-7,12``: one may be longer than memory, so none is unrolled."""
    for word in text.split(","):
        first, dash, last = word.strip().partition("-")
        if not first.isdecimal() or not (last.isdecimal() if dash else True):
            raise UsageError(f"--number is {text!r}: it is written as 3-7,12")
        numbers = range(int(first), int(last if dash else first) + 1)
        if not numbers:
            raise UsageError(f"--number is {text!r}: {word} ends before it begins")
        yield numbers
