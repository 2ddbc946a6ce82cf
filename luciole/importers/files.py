"""Find out what a path is, and import it."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from luciole.importers.circle import from_bytes, import_model
from luciole.ir import LucioleError, Model
from luciole.ir.errors import FormatError
from luciole.ir.verify import Finding
from luciole.schema.reader import Bytes, dialect_of

_HDF5 = b"\x89HDF\r\n\x1a\n"
_ZIP = b"PK\x03\x04"


def load(path: str | os.PathLike[str]) -> Model:
    """Load a model from a .circle, .tflite, .keras or .h5 file or a SavedModel folder.

    The content decides. Constants of circle and TFLite files stay in the mapped file until used.
    Raises FormatError when it is none of these or is damaged, LucioleError when it cannot be read
    or an extra is missing.
    """
    path = Path(path)
    if not is_flatbuffer(path):
        return _load_keras(path)
    with _named(path):
        return from_bytes(map_file(path))


def load_with_findings(path: str | os.PathLike[str]) -> tuple[Model, list[Finding]]:
    """Load a .circle or .tflite file and say what is wrong with it instead of refusing it."""
    path = Path(path)
    if is_flatbuffer(path):
        with _named(path):
            return import_model(map_file(path))
    return _load_keras(path), []


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Put a file's name in front of what is wrong with it."""
    try:
        yield
    except FormatError as error:
        raise FormatError(f"{path.name}: {error}") from None


def is_flatbuffer(path: Path) -> bool:
    """Whether a file starts like a .circle or .tflite file. Raises when it starts like nothing
    known.
    """
    if path.is_dir():
        return False
    start = _start(path)
    if start.startswith((_HDF5, _ZIP)):
        return False
    if dialect_of(start) is None:
        raise FormatError(
            f"{path.name}: not a .circle, .tflite, .keras, .h5 or SavedModel "
            f"(it starts with {start[:8]!r})"
        )
    return True


def _start(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(16)
    except OSError as error:
        raise LucioleError(f"{path}: {error.strerror or error}") from None


def map_file(path: Path) -> Bytes:
    """A file's bytes, mapped and read-only."""
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _load_keras(path: Path) -> Model:
    from luciole.importers import keras

    return keras.load(path)
