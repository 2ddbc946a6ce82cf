"""Models to the bytes of a file, and to files, each by the writer of its format."""

from __future__ import annotations

import os
from pathlib import Path

from luciole.exporters.writer import DEFAULT, writer_of
from luciole.files import check_writable, write_file
from luciole.ir import Model


def to_bytes(model: Model, format: str = DEFAULT, *, use_buffer_offset: bool = False) -> bytes:
    """Give the bytes of a file of a ``format``: "circle", "tflite".

    Constants lie behind the tables where there are more than 2 GB, and with ``use_buffer_offset``.
    Raises what ``save`` does.
    """
    return b"".join(writer_of(Path(f"model.{format}")).parts(model, use_buffer_offset))


def save(model: Model, path: str | os.PathLike[str], *, use_buffer_offset: bool = False) -> int:
    """Write a model in the format that its name's extension asks for, circle where it has none.
    Returns the file's size in bytes. The file appears whole or not at all, see
    ``luciole.files.replacing``.

    Constants lie behind the tables where there are more than 2 GB, and with ``use_buffer_offset``.
    Raises UnsupportedError for operators that the format has not, FormatError that names what else
    it cannot hold, LucioleError when the file cannot be written.
    """
    return write_file(path, writer_of(Path(path)).parts(model, use_buffer_offset))


def check_target(path: str | os.PathLike[str]) -> None:
    """Refuse early what ``save`` would refuse after long work: another extension, a folder that
    cannot be written.
    """
    writer_of(Path(path))
    check_writable(path)
