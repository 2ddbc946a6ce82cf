"""Files and folders to models, each by the reader that recognises it."""

from __future__ import annotations

import os
from pathlib import Path

from luciole.importers.imported import Imported
from luciole.importers.reader import named, reader_of
from luciole.ir import Model
from luciole.ir.findings import Finding

Path_ = str | os.PathLike[str]


def load(path: Path_, batch: int | None = None, *, unroll: bool = False) -> Model:
    """Load a model from a file or folder of any kind that ``luciole.importers`` reads.

    The content decides. Inputs whose first extent is open get that of ``batch``. ``unroll``
    has recurrent layers of a Keras file step by step, so that they can be quantized and trained.
    Constants of circle and TFLite files are views of the file's bytes: of a copy, or from 64 MB on
    of the mapped file, which nobody may write to meanwhile. Raises FormatError when
    no reader recognises it, it is damaged or cannot be unrolled, LucioleError when it cannot be
    read or an extra is missing, and ShapeError where operators do not take the batch size.
    """
    imported = read(path, batch, unroll=unroll)
    with named(Path(path)):
        return imported.sound()


def load_with_findings(path: Path_) -> tuple[Model, list[Finding]]:
    """Load a model as ``load`` does and list its faults instead of refusing it."""
    imported = read(path)
    return imported.model, imported.findings


def read(path: Path_, batch: int | None = None, *, unroll: bool = False) -> Imported:
    """Read a file or folder, with everything that is wrong with it. Raises what ``load`` does but
    for a model that has errors.
    """
    reader = reader_of(Path(path))
    if unroll:
        return reader.read_unrolled(Path(path), batch)
    return reader.read(Path(path)) if batch is None else reader.read_for(Path(path), batch)
