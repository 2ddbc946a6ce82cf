"""Find out what a path is, and import it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from luciole.files import map_file
from luciole.importers.circle.model import from_bytes, import_model, sound
from luciole.importers.recipe.cook import import_recipe, is_recipe
from luciole.importers.recipe.fillers import CONSTANTS_LIMIT
from luciole.ir import LucioleError, Model
from luciole.ir.errors import FormatError
from luciole.ir.verify import Finding, verify
from luciole.schema.reader import dialect_of

_HDF5 = b"\x89HDF\r\n\x1a\n"
_ZIP = b"PK\x03\x04"
_LONGEST_COMMENT = 1 << 16
"""Bytes within which a recipe's first field begins."""
_WHOLE = -1


def load(path: str | os.PathLike[str]) -> Model:
    """Load a model from a .circle, .tflite, .recipe, .keras or .h5 file or a SavedModel folder.

    The content decides. Constants of circle and TFLite files stay in the mapped file until used.
    Raises FormatError when it is none of these or is damaged, LucioleError when it cannot be read
    or an extra is missing.
    """
    path = Path(path)
    if is_flatbuffer(path):
        with _named(path):
            return from_bytes(map_file(path))
    if _is_text(path):
        return sound(*load_recipe(path))
    return _load_keras(path)


def load_with_findings(path: str | os.PathLike[str]) -> tuple[Model, list[Finding]]:
    """Load a .circle, .tflite or .recipe file and say what is wrong with it instead of refusing
    it.
    """
    path = Path(path)
    if is_flatbuffer(path):
        with _named(path):
            return import_model(map_file(path))
    return load_recipe(path) if _is_text(path) else (_load_keras(path), [])


def load_recipe(
    path: Path, seed: int = 0, constants_limit: int = CONSTANTS_LIMIT
) -> tuple[Model, list[Finding]]:
    """Cook one of ONE's model recipes (protobuf text), and say what is wrong with the model.

    ``seed`` is what random constants start from, ``constants_limit`` the bytes that all may take.
    """
    text = _read(path, _WHOLE).decode("utf-8", "surrogateescape")
    with _named(path):
        model = import_recipe(text, seed, constants_limit)
    return model, verify(model)


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
    start = _read(path, _LONGEST_COMMENT)
    if start.startswith((_HDF5, _ZIP)) or is_recipe(start):
        return False
    if dialect_of(start) is None:
        raise FormatError(
            f"{path.name}: not a .circle, .tflite, .recipe, .keras, .h5 or SavedModel "
            f"(it starts with {start[:8]!r})"
        )
    return True


def _is_text(path: Path) -> bool:
    return not path.is_dir() and is_recipe(_read(path, _LONGEST_COMMENT))


def _read(path: Path, count: int) -> bytes:
    """A file's first bytes."""
    try:
        with path.open("rb") as file:
            return file.read(count)
    except OSError as error:
        raise LucioleError(f"{path}: {error.strerror or error}") from None


def _load_keras(path: Path) -> Model:
    from luciole.importers.keras import convert

    return convert.load(path)
