"""Models to the bytes of a file, and to files."""

from __future__ import annotations

import os
from pathlib import Path

from luciole.exporters.circle.tables import export_model
from luciole.files import check_writable, write_file
from luciole.ir import LucioleError, Model
from luciole.schema.dialect import CIRCLE, DIALECTS, Dialect

_BY_NAME = {d.name: d for d in DIALECTS}


def to_bytes(model: Model, format: str = "circle", *, use_buffer_offset: bool = False) -> bytes:
    """A model as the bytes of a file; ``format`` is "circle" or "tflite".

    Constants lie behind the tables where there are more than 2 GB, and with ``use_buffer_offset``.
    """
    return b"".join(export_model(model, _BY_NAME[format], use_buffer_offset))


def save(model: Model, path: str | os.PathLike[str], *, use_buffer_offset: bool = False) -> int:
    """Write a model: as TFLite where the name ends in .tflite, else as circle. Returns the file's
    size in bytes. The file appears whole or not at all, see ``luciole.files.replacing``.

    Constants lie behind the tables where there are more than 2 GB, and with ``use_buffer_offset``.
    Raises UnsupportedError for operators that the format has not, FormatError that names what else
    it cannot hold, LucioleError when the file cannot be written.
    """
    return write_file(path, export_model(model, format_of(Path(path)), use_buffer_offset))


def format_of(path: Path) -> Dialect:
    """The format that a file name asks for. Raises LucioleError for one that is neither."""
    dialect = _BY_NAME.get(path.suffix[1:].lower()) if path.suffix else CIRCLE
    if dialect is None:
        raise LucioleError(f"{path.name}: can write .circle and .tflite, not {path.suffix}")
    return dialect


def check_target(path: str | os.PathLike[str]) -> None:
    """Refuse early what ``save`` would refuse after long work: another ending, a folder that cannot
    be written.
    """
    format_of(Path(path))
    check_writable(path)
