"""Models to the bytes of a file, and to files, each by the writer of its format."""

from __future__ import annotations

import os
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from luciole.exporters.writer import DEFAULT, ModelWriter, writer_of
from luciole.files import check_writable, write_file
from luciole.ir import Model, Op
from luciole.ir.checked import checked
from luciole.ir.errors import FormatError, LucioleError, expect
from luciole.ir.findings import refusal
from luciole.ir.verify import verify

_SLIPS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, struct.error)
"""Errors of a writer where a model is not as it is declared to be."""


@checked
def to_bytes(
    model: Model,
    format: str = DEFAULT,
    *,
    use_buffer_offset: bool = False,
    opset: int | None = None,
    exact: bool = False,
    check: bool = True,
) -> bytes:
    """Give the bytes of a file of a ``format``: "circle", "tflite", "onnx".

    Constants lie behind the tables where there are more than 2 GB, and with ``use_buffer_offset``;
    ``opset`` is the version of an ONNX file's operators, ``exact`` lets its int8 layers give the
    codes of TFLite's kernels; ``check`` as for ``save``. Raises what ``save`` does.
    """
    writer = _writer(Path(f"model.{format}"), opset, exact)
    return b"".join(_parts(writer, model, use_buffer_offset, check))


@checked
def save(
    model: Model,
    path: str | os.PathLike[str],
    *,
    use_buffer_offset: bool = False,
    opset: int | None = None,
    exact: bool = False,
    check: bool = True,
) -> int:
    """Write a model in the format that its name's extension asks for, circle where it has none.
    Returns the file's size in bytes. The file appears whole or not at all, see
    ``luciole.files.replacing``.

    Constants lie behind the tables where there are more than 2 GB, and with ``use_buffer_offset``;
    ``opset`` is the version of an ONNX file's operators (unless it is given 18, or 21 for integers
    of 4 or 16 bits); ``exact`` lets its int8 layers give the codes of TFLite's kernels, in
    operators on integers, but for those that ``inexact`` lists. Without ``check`` models are
    written that ``load`` refuses. Raises FormatError with the first error that ``verify`` finds in
    the model, or that names what the format cannot hold, UnsupportedError for operators that it has
    not, LucioleError when the file cannot be written or has no opset.
    """
    expect(path, (str, os.PathLike), "a path to save to")
    writer = _writer(Path(path), opset, exact)
    return write_file(path, _parts(writer, model, use_buffer_offset, check))


def _parts(writer: ModelWriter, model: Model, behind: bool, check: bool) -> Iterator[memoryview]:
    """Give the parts of a file, where there is a ``check`` of a model that can be loaded again."""
    try:
        reason = refusal(verify(model)) if check else None
        if reason is not None:
            raise FormatError(f"what is to be saved could not be loaded: {reason}")
        yield from writer.parts(model, behind)
    except LucioleError:
        raise
    except _SLIPS as error:  # attributes, names and arrays may be set to anything
        text = " ".join(str(error).split())
        what = f"{type(error).__name__}: {text}"
        raise FormatError(f"the model holds what no file can ({what})") from error


def inexact(model: Model, path: str | os.PathLike[str], *, exact: bool = True) -> list[str]:
    """List the kinds of operators on integers, each with the name of one, whose codes a file that
    ``save`` writes with these settings may give a step apart from TFLite's kernels.
    """
    return _by_kind(_writer(Path(path), None, exact).inexact(model))


def refused(model: Model, path: str | os.PathLike[str]) -> list[str]:
    """List the kinds of operators, each with the name of one, which the runtime that a file is for
    does not run with their element types; ours does.
    """
    return _by_kind(writer_of(Path(path)).refused(model))


def _by_kind(ops: Sequence[Op]) -> list[str]:
    first: dict[str, Op] = {}
    for op in ops:
        first.setdefault(op.kind, op)
    counts = Counter(op.kind for op in ops)
    repeats = {kind: f" and {n - 1} more" if n > 1 else "" for kind, n in counts.items()}
    return [f"{kind} {op.name!r}{repeats[kind]}" for kind, op in first.items()]


def _writer(path: Path, opset: int | None, exact: bool) -> ModelWriter:
    writer = writer_of(path).exactly() if exact else writer_of(path)
    return writer if opset is None else writer.of_opset(opset)


def check_target(path: str | os.PathLike[str]) -> None:
    """Refuse early the targets that ``save`` would refuse after long work: another extension, a
    folder that cannot be written.
    """
    writer_of(Path(path))
    check_writable(path)
