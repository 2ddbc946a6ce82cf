"""Refusals of data: one line that begins with the file's name, whatever a library raised."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from luciole.schema.errors import FormatError, LucioleError
from luciole.schema.printable import printable, shorten
from luciole.tools.common.command import UsageError

_LONGEST = 1000
"""Characters of a path or of a library's words in a refusal."""


class DataError(LucioleError, ValueError):
    """Calibration or evaluation data cannot be read, or does not fit the model's inputs."""


class AskedError(DataError, UsageError):
    """The request makes no sense, whatever the data are."""


@contextmanager
def about(path: str) -> Iterator[None]:
    """Begin every refusal with the file's name; the operating system's refusals become one, too."""
    shown = shorten(printable(path), _LONGEST)
    try:
        yield
    except (DataError, FormatError) as error:
        raise DataError(f"{shown}: {error}") from error
    except FileNotFoundError as error:
        raise DataError(f"{shown}: no such file or folder") from error
    except (OSError, MemoryError) as error:
        raise DataError(f"{shown}: {_one_line(error)}") from error


@contextmanager
def damage_refused(what: str) -> Iterator[None]:
    """Turn whatever a library raises on damaged contents into one refusal; wrap only its calls.

    Everything, because no list is complete: a flipped bit in an .npy header gave a TokenError.
    """
    try:
        yield
    except DataError:
        raise
    except Exception as error:
        raise DataError(f"{what} is damaged or cannot be read: {_one_line(error)}") from error


def _one_line(error: BaseException) -> str:
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        text = error.strerror
    return shorten(" ".join(text.split()), _LONGEST) or type(error).__name__
