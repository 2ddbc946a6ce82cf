"""Circle and TFLite files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from luciole.importers.reader import ModelReader, named

if TYPE_CHECKING:
    from luciole.importers.imported import Imported

_COMMENT = b"#"
"""First byte that a recipe may have, but no offset of a table: those are multiples of 4."""


class CircleReader(ModelReader):
    """Reads .circle and .tflite files: the same tables, told apart by their identifiers."""

    name = "circle and TFLite"
    extensions = (".circle", ".tflite")

    def recognises(self, start: bytes) -> bool:
        """Look for the identifier of a dialect."""
        from luciole.schema.reader import dialect_of

        return dialect_of(start) is not None and not start.startswith(_COMMENT)

    def read(self, path: Path) -> Imported:
        """Read a file, whose bytes are mapped if they are many: constants are views of them."""
        from luciole.files import contents_of
        from luciole.importers.circle.model import import_file

        with named(path):
            return import_file(contents_of(path))

    def read_bytes(self, data: bytes) -> Imported:
        """Read a file's bytes."""
        from luciole.importers.circle.model import import_file

        return import_file(data)
