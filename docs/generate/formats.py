"""The kinds of files that hold models, found as readers and writers."""

from __future__ import annotations

from luciole.exporters.writer import writers
from luciole.importers.reader import ModelReader, readers


def table() -> str:
    """List what is read, what of it is written, and what reading needs."""
    rows = ["| files | what they are called | written | needs |", "|---|---|---|---|"]
    return "\n".join([*rows, *map(_row, readers())])


def _row(reader: ModelReader) -> str:
    called = ", ".join(
        [*(f"`{e}`" for e in reader.extensions), *(f"{f} folders" for f in reader.folders)]
    )
    also = ", ".join(f"`{w.extension}`" for w in writers() if w.extension in reader.extensions)
    needs = f"extra `{reader.extra}`" if reader.extra else ""
    return f"| {reader.name} | {called} | {also} | {needs} |"
