"""How programs that look at models read them: also what ``verify`` refuses, also from stdin."""

from __future__ import annotations

import sys
from pathlib import Path

from luciole.files import map_file
from luciole.importers import files, import_model
from luciole.importers.recipe import import_recipe, is_recipe
from luciole.ir import Model
from luciole.schema.dialect import CIRCLE, Dialect
from luciole.schema.reader import dialect_of


def read_model(path: str) -> tuple[Model, Dialect]:
    """The model behind a path (``-``: standard input) and its file's format; CIRCLE for what has
    none. Looking is how people find out why ``verify`` refuses a file.
    """
    if path == "-":
        return _read_bytes(sys.stdin.buffer.read())
    model, _ = files.load_with_findings(path)
    known = dialect_of(map_file(Path(path))) if files.is_flatbuffer(Path(path)) else None
    return model, known or CIRCLE


def _read_bytes(data: bytes) -> tuple[Model, Dialect]:
    if is_recipe(data):
        return import_recipe(data.decode("utf-8", "surrogateescape")), CIRCLE
    return import_model(data)[0], dialect_of(data) or CIRCLE
