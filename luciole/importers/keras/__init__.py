"""Keras models and SavedModels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from luciole.importers.reader import ModelReader, with_inputs

if TYPE_CHECKING:
    from luciole.importers.extents import Settled
    from luciole.importers.imported import Imported

_ARCHIVE = b"PK\x03\x04"
_HDF5 = b"\x89HDF\r\n\x1a\n"


class KerasReader(ModelReader):
    """Reads models that Keras and TensorFlow save, through TensorFlow's own converter."""

    name = "Keras and TensorFlow"
    extensions = (".keras", ".h5")
    folders = ("SavedModel",)
    extra = "tensorflow"

    def recognises(self, start: bytes) -> bool:
        """Look for an archive or an HDF5 file."""
        return start.startswith((_ARCHIVE, _HDF5))

    def recognises_folder(self, path: Path) -> bool:
        """Take any folder: converting it says what a SavedModel has."""
        return True

    def read(self, path: Path) -> Imported:
        """Convert a file or folder. Raises what ``convert.load`` does."""
        from luciole.importers.keras import convert

        return convert.load(path)

    def read_for(self, path: Path, settled: Settled) -> Imported:
        """Convert a file for batches of one size: some layers can only be converted so."""
        from luciole.importers.keras import convert

        return with_inputs(convert.load(path, settled.batch), settled)

    def read_unrolled(self, path: Path, settled: Settled) -> Imported:
        """Convert a file without loops. Raises what ``convert.load`` does."""
        from luciole.importers.keras import convert

        return with_inputs(convert.load(path, settled.batch, unroll=True), settled)
