"""Find the readers of models: one for each kind of file.

A reader is a class in the ``__init__`` of a folder beside this file, where it is found: reading
another kind of file means another folder, and nothing else. The ``__init__`` imports nothing heavy
before a file is read, because help texts name what can be read.
"""

from __future__ import annotations

import importlib
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from luciole.schema.errors import FormatError, LucioleError
from luciole.schema.printable import listed

if TYPE_CHECKING:
    from luciole.importers.extents import Settled
    from luciole.importers.imported import Imported

STANDARD_INPUT = "standard input"

_ARCHIVE, _NAME_SIZE, _NAME = b"PK\x03\x04", 26, 30
"""How a zip archive begins, and where its first member's name stands."""
_NUMPY, _ARRAY = b"\x93NUMPY", b".npy"
"""How a file of an array begins, and how the names of arrays in archives end."""
_START = 1 << 16
"""Bytes by which files are recognised: a recipe's first field may stand behind comments."""
_WHOLE = -1


@dataclass(frozen=True)
class Example:
    """Inputs by which a model of a program is traced, and which extents of theirs stay open, as
    torch.export takes both.
    """

    inputs: object = None
    dynamic_shapes: object = None

    def __bool__(self) -> bool:
        return self.inputs is not None or self.dynamic_shapes is not None


class ModelReader(ABC):
    """Recognises one kind of file by its contents, and reads it.

    ``name`` says what the files are called, ``extensions`` what their names usually end in,
    ``folders`` which kinds of folders are read, ``live`` the class of objects of a program that are
    read as well, and ``extra`` which of luciole's extras is needed.
    Raises TypeError for a class that says nothing of this, or an extension that is none.
    """

    name: ClassVar[str] = ""
    extensions: ClassVar[tuple[str, ...]] = ()
    folders: ClassVar[tuple[str, ...]] = ()
    live: ClassVar[str] = ""
    extra: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        """Refuse a reader that help texts could not name."""
        if not cls.name or not (*cls.extensions, *cls.folders):
            raise TypeError(f"reader {cls.__name__}: a name and extensions or folders are needed")
        wrong = [e for e in cls.extensions if not e.startswith(".") or e != e.lower()]
        if wrong:
            raise TypeError(f"reader {cls.__name__}: {wrong[0]!r} is not like '.circle'")

    @property
    def forms(self) -> tuple[str, ...]:
        """Extensions and kinds of folders, as sentences list them."""
        return (*self.extensions, *self.folders)

    @abstractmethod
    def recognises(self, start: bytes) -> bool:
        """Return whether a file that starts with these bytes is of this kind."""

    def recognises_folder(self, path: Path) -> bool:
        """Return whether a folder is of this kind."""
        return False

    @abstractmethod
    def read(self, path: Path) -> Imported:
        """Read a file that was recognised, with everything that is wrong with it. Raises
        FormatError, with the file's name, where there is no model in it at all.
        """

    def read_for(self, path: Path, settled: Settled) -> Imported:
        """Read a file as ``read`` does, with what is settled of its inputs. Raises what
        ``extents.settle`` does.
        """
        return with_inputs(self.read(path), settled)

    def read_unrolled(self, path: Path, settled: Settled) -> Imported:
        """Read a file as ``read`` and ``read_for`` do, recurrent layers step by step in place of
        loops. Raises FormatError for kinds that hold their loops as they are.
        """
        raise FormatError(f"{path.name}: only recurrent layers of Keras files can be unrolled")

    def takes(self, live: object) -> bool:
        """Return whether an object of a program is a model of this kind."""
        return False

    def read_live(self, live: object, example: Example, settled: Settled) -> Imported:
        """Read an object that is taken, by example inputs where its framework needs them."""
        raise NotImplementedError(f"{type(self).__name__} takes objects and does not read them")

    def read_bytes(self, data: bytes) -> Imported:
        """Read a file's bytes. Raises FormatError for kinds that are only read from files."""
        raise FormatError(f"{listed(self.forms)} is read by its path, not from bytes")

    def read_bytes_for(self, data: bytes, settled: Settled) -> Imported:
        """Read a file's bytes, with what is settled of its inputs. Raises what ``extents.settle``
        does.
        """
        return with_inputs(self.read_bytes(data), settled)


def with_inputs(imported: Imported, settled: Settled) -> Imported:
    """Give the inputs of a model that was read what is settled of them. Raises what
    ``extents.settle`` does.
    """
    from luciole.importers.extents import settle

    if imported.model.graphs and settled:
        settle(imported.model.graph, settled)
    return imported


@cache
def readers() -> tuple[ModelReader, ...]:
    """Find all readers: those that need no extra come first, each part in the alphabet of its
    folders.
    """
    for folder in pkgutil.iter_modules([str(Path(__file__).parent)]):
        if folder.ispkg:
            importlib.import_module(f"{__package__}.{folder.name}")
    kinds = sorted(ModelReader.__subclasses__(), key=lambda kind: (kind.extra, kind.__module__))
    return tuple(kind() for kind in kinds)


def readable() -> str:
    """List the files that can be read: ".circle, .tflite, ... or SavedModel"."""
    return listed(form for reader in readers() for form in reader.forms)


def reader_of(path: Path) -> ModelReader:
    """Find the reader of a file or folder. Raises FormatError where there is none, LucioleError
    where the file cannot be read.
    """
    if not path.is_dir():
        return _reader_of_start(file_bytes(path, _START), path.name)
    for reader in readers():
        if reader.recognises_folder(path):
            return reader
    raise FormatError(f"{path.name}: this folder is not a {readable()}")


def reader_of_live(live: object) -> ModelReader:
    """Find the reader of an object of a program. Raises LucioleError where there is none."""
    for reader in readers():
        if reader.takes(live):
            return reader
    kinds = listed(["the path of a model", *(f"a {r.live}" for r in readers() if r.live)])
    raise LucioleError(f"{type(live).__name__} is not read: {kinds} is")


def reader_of_bytes(data: bytes, name: str = STANDARD_INPUT) -> ModelReader:
    """Find the reader of a file's bytes, that came through standard input or by another ``name``.
    Raises FormatError where there is none.
    """
    return _reader_of_start(data[:_START], name)


def _reader_of_start(start: bytes, name: str) -> ModelReader:
    for reader in readers():
        if reader.recognises(start):
            return reader
    if holds_arrays(start):
        raise FormatError(f"{name}: NumPy arrays, not a model: a {readable()} is needed")
    raise FormatError(f"{name}: not a {readable()} (it starts with {start[:8]!r})")


def file_bytes(path: Path, count: int = _WHOLE) -> bytes:
    """Read a file's first bytes, all unless ``count`` is given. Raises LucioleError where that is
    not possible.
    """
    try:
        with path.open("rb") as file:
            return file.read(count)
    except (OSError, ValueError) as error:  # a path with a zero byte is a ValueError
        reason = getattr(error, "strerror", None) or error
        raise LucioleError(f"{path}: {reason}") from None


def member_of_folder(start: bytes) -> bool | None:
    """Return whether the first member of a model's zip archive lies in a folder; None for other
    files and for NumPy's archives.
    """
    if not start.startswith(_ARCHIVE) or holds_arrays(start):
        return None
    return b"/" in _first_member(start)


def holds_arrays(start: bytes) -> bool:
    """Return whether a file is one of NumPy: an array, or a zip archive that begins with one."""
    archived = start.startswith(_ARCHIVE) and _first_member(start).endswith(_ARRAY)
    return archived or start.startswith(_NUMPY)


def _first_member(start: bytes) -> bytes:
    """Return the name of a zip archive's first member."""
    size = int.from_bytes(start[_NAME_SIZE : _NAME_SIZE + 2], "little")
    return start[_NAME : _NAME + size]


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Put a file's name in front of errors."""
    try:
        yield
    except FormatError as error:
        raise FormatError(f"{path.name}: {error}") from None
