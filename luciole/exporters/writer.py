"""Find the writers of models: one for each kind of file.

A writer is a class in the ``__init__`` of a folder beside this file, where it is found, as readers
of files are. The ``__init__`` imports nothing heavy before a file is written.
"""

from __future__ import annotations

import importlib
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from luciole.schema.errors import LucioleError
from luciole.schema.printable import listed

if TYPE_CHECKING:
    from luciole.ir import Model, Op

DEFAULT = "circle"
"""Format that is written where a name has no extension."""


class ModelWriter(ABC):
    """Writes models as one kind of file.

    ``extension`` is what the files' names end in; without its dot it is the name of the format.
    Raises TypeError for a class whose extension is none.
    """

    extension: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        """Refuse a writer that no file name asks for."""
        if not cls.extension.startswith(".") or cls.extension != cls.extension.lower():
            raise TypeError(f"writer {cls.__name__}: {cls.extension!r} is not like '.circle'")

    @property
    def format(self) -> str:
        """The name of the format."""
        return self.extension[1:]

    def of_opset(self, opset: int) -> ModelWriter:
        """Make a writer of a version of the format's operators. Raises LucioleError for a format
        that has none.
        """
        raise LucioleError(f"{self.extension} files have no opset; .onnx files do")

    def exactly(self) -> ModelWriter:
        """Make a writer that spells int8 arithmetic out. Raises LucioleError for a format whose
        operators compute so anyway.
        """
        raise LucioleError(f"{self.extension} files are exact as they are; .onnx files need it")

    def inexact(self, model: Model) -> list[Op]:
        """List the operators on integers whose results the file does not give exactly."""
        return []

    def refused(self, model: Model) -> list[Op]:
        """List the operators that the format's own runtime refuses for their element types."""
        return []

    @abstractmethod
    def parts(self, model: Model, use_buffer_offset: bool = False) -> Iterator[memoryview]:
        """Give a file's bytes in parts. Raises UnsupportedError for operators that the format has
        not, FormatError that names what else it cannot hold.
        """


@cache
def writers() -> tuple[ModelWriter, ...]:
    """Find all writers, in the alphabet of their folders and formats."""
    for folder in pkgutil.iter_modules([str(Path(__file__).parent)]):
        if folder.ispkg:
            importlib.import_module(f"{__package__}.{folder.name}")
    kinds = ModelWriter.__subclasses__()
    return tuple(kind() for kind in sorted(kinds, key=lambda k: (k.__module__, k.extension)))


def writable(last: str = "or") -> str:
    """List the extensions of files that can be written: ".circle, .tflite or .onnx"."""
    return listed((writer.extension for writer in writers()), last)


def writer_of(path: Path) -> ModelWriter:
    """Find the writer that a file name asks for. Raises LucioleError where there is none."""
    extension = path.suffix.lower() or f".{DEFAULT}"
    for writer in writers():
        if writer.extension == extension:
            return writer
    raise LucioleError(f"{path.name}: can write {writable('and')}, not {path.suffix}")
