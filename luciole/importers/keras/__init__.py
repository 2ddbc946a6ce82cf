"""Keras models and SavedModels."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from luciole.importers.reader import Example, ModelReader, member_of_folder, with_inputs
from luciole.schema.errors import LucioleError

if TYPE_CHECKING:
    from luciole.importers.extents import Settled
    from luciole.importers.imported import Imported

_HDF5 = b"\x89HDF\r\n\x1a\n"


class KerasReader(ModelReader):
    """Reads models that Keras and TensorFlow save, through TensorFlow's own converter."""

    name = "Keras and TensorFlow"
    extensions = (".keras", ".h5")
    folders = ("SavedModel",)
    live = "keras.Model"
    extra = "tensorflow"

    def recognises(self, start: bytes) -> bool:
        """Look for an archive without a folder around all, or an HDF5 file."""
        return member_of_folder(start) is False or start.startswith(_HDF5)

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

    def takes(self, live: object) -> bool:
        """Return whether an object is a model of the Keras that is imported."""
        keras = sys.modules.get("keras")
        return keras is not None and isinstance(live, keras.Model)

    def read_live(self, live: object, example: Example, settled: Settled) -> Imported:
        """Convert a model, whose inputs say their shapes. Raises LucioleError for an example."""
        from luciole.importers.keras import convert

        if example:
            raise LucioleError("a Keras model has its shapes: no example goes with it")
        return with_inputs(convert.from_live(live, settled.batch), settled)
