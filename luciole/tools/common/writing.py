"""How programs that write models begin: what cannot be written is refused before long work."""

from __future__ import annotations

from pathlib import Path

from luciole.exporters.files import check_target, format_of
from luciole.schema.dialect import Dialect
from luciole.schema.errors import LucioleError
from luciole.tools.common.command import UsageError


def check_output(path: str) -> Dialect:
    """The format that a model's file name asks for. Raises UsageError for an ending of none, and
    LucioleError where no file can be written.
    """
    try:
        dialect = format_of(Path(path))
    except LucioleError as error:
        raise UsageError(str(error)) from None
    check_target(path)
    return dialect
