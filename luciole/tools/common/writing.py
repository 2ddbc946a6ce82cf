"""Begin programs that write models: what cannot be written is refused before long work."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from luciole.exporters.files import check_target
from luciole.exporters.writer import writer_of
from luciole.schema.errors import LucioleError
from luciole.tools.common.command import UsageError


def check_apart(written: Iterable[str | None], read: Iterable[str | None] = ()) -> None:
    """Refuse to write two things to one file, and over one that is ``read``; None is no file.

    Raises UsageError.
    """
    seen = {Path(path).resolve() for path in read if path is not None}
    for path in filter(None, written):
        place = Path(path).resolve()
        if place in seen and (not place.exists() or place.is_file()):
            raise UsageError(f"{path} is named twice: give each file that is written a place")
        seen.add(place)


def check_output(path: str) -> str:
    """Return the format that a model's file name asks for. Raises UsageError for an extension of
    none, and LucioleError where no file can be written.
    """
    try:
        writer = writer_of(Path(path))
    except LucioleError as error:
        raise UsageError(str(error)) from None
    check_target(path)
    return writer.format
