"""Write files so that a reader never sees half of one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from luciole.exporters.circle import export_model
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
    size in bytes.

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
    path = Path(path)
    format_of(path)
    folder = path.parent
    if path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        why = "it is a folder" if path.is_dir() else f"folder {folder} cannot be written"
        raise LucioleError(
            f"cannot write {path}: {why if folder.is_dir() else f'there is no folder {folder}'}"
        )


def write_file(path: str | os.PathLike[str], content: bytes | str | Iterable[memoryview]) -> int:
    """Write a whole file or nothing: to a temporary file beside it, then renamed over it.

    The content may come in parts. Returns the file's size in bytes.
    """
    path = Path(path)
    data = content.encode() if isinstance(content, str) else content
    parts = [memoryview(data)] if isinstance(data, bytes) else data
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:64]}.")
    except OSError as error:
        raise LucioleError(f"cannot write {path}: {error.strerror or error}") from None
    try:
        with os.fdopen(handle, "wb") as file:
            size = sum(file.write(part) for part in parts)
        os.chmod(temporary, _mode(path))
        os.replace(temporary, path)
    except BaseException as error:
        os.unlink(temporary)
        if isinstance(error, OSError):
            raise LucioleError(f"cannot write {path}: {error.strerror or error}") from None
        raise
    return size


def _mode(path: Path) -> int:
    """The permissions of the file that is replaced, or what the process gives to new files."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
