"""Begin programs that write models: what cannot be written is refused before long work."""

from __future__ import annotations

from pathlib import Path

from luciole.exporters.files import check_target
from luciole.exporters.writer import writer_of
from luciole.schema.errors import LucioleError
from luciole.tools.common.command import UsageError


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
