"""Read what people settle of a model's inputs: open extents, and constants in their places."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from luciole.files.json_reading import parse_json
from luciole.schema.printable import quoted
from luciole.tools.common.command import check_batch
from luciole.tools.common.shapes import parse_shape

if TYPE_CHECKING:
    from luciole.importers.extents import Settled
    from luciole.ir import Shape


def add_extents(parser: argparse.ArgumentParser) -> None:
    """Declare ``--batch``, ``--shape``, ``--dim`` and ``--constant``, for programs that read models
    which leave them open.
    """
    parser.add_argument(
        "--batch", type=int, metavar="N", help="the batch size of inputs whose batch size is open"
    )
    parser.add_argument(
        "--shape",
        action="append",
        type=_shape,
        metavar="NAME=1,3,64,64",
        help="the shape of an input that has open dimensions (? for one that stays open)",
    )
    parser.add_argument(
        "--dim",
        action="append",
        type=_dim,
        metavar="NAME=N",
        help="the size of an open dimension, by its name in the .onnx file, wherever it occurs",
    )
    parser.add_argument(
        "--constant",
        action="append",
        type=_constant,
        metavar="NAME=NUMBER",
        help="replace an input by a constant: a number, or several such as [1,2]",
    )


def _shape(text: str) -> tuple[str, Shape]:
    """Read ``NAME=1,3,?,64``. Raises ArgumentTypeError."""
    name, shape = _named(text, "NAME=1,3,64,64")
    return name, parse_shape(shape)


def _dim(text: str) -> tuple[str, int]:
    """Read ``NAME=N``. Raises ArgumentTypeError."""
    name, number = _named(text, "NAME=N")
    return name, _whole(number)


def _constant(text: str) -> tuple[str, object]:
    """Read ``NAME=NUMBER``, or several as JSON has them. Raises ArgumentTypeError."""
    name, number = _named(text, "NAME=NUMBER")
    try:
        return name, parse_json(number)
    except ValueError:
        sentence = f"{quoted(number)} is no number, nor a list as [1,2]"
        raise argparse.ArgumentTypeError(sentence) from None


def _named(text: str, form: str) -> tuple[str, str]:
    name, equals, rest = text.rpartition("=")
    if not (name and equals and rest):
        raise argparse.ArgumentTypeError(f"{text!r}: it is written {form}")
    return name, rest


def _whole(text: str) -> int:
    if not text.strip().isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no extent: 1 and more are")
    return int(text)


def asked_extents(arguments: argparse.Namespace) -> Settled:
    """Collect the options. Raises UsageError for a batch without records, ShapeError for other
    extents that there are not.
    """
    from luciole.importers.extents import Settled

    check_batch(arguments.batch)
    shapes, dims, constants = (
        dict(pairs or ()) for pairs in (arguments.shape, arguments.dim, arguments.constant)
    )
    return Settled(arguments.batch, shapes, dims, constants)
