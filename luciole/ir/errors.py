"""Name the errors of a model whose bytes are read."""

from __future__ import annotations

import json
from collections.abc import Sequence

from luciole.schema.errors import ChoiceError, FormatError, LucioleError
from luciole.schema.printable import printable

__all__ = [
    "SLIPS",
    "ChoiceError",
    "DefinitionError",
    "FormatError",
    "GraphError",
    "LucioleError",
    "ShapeError",
    "UnrankedError",
    "UnsupportedError",
    "expect",
    "missing_extra",
]


SLIPS = (ArithmeticError, LookupError, TypeError, ValueError)
"""Exceptions of Python and NumPy where a rule meets operands that its author did not think of."""


def expect(value: object, kinds: type | tuple[type, ...], needed: str) -> None:
    """Refuse an argument of another type; True and False are no numbers. Raises LucioleError that
    says what is needed.
    """
    accepted = kinds if isinstance(kinds, tuple) else (kinds,)
    is_flag = isinstance(value, bool) and not {bool, object} & set(accepted)
    if is_flag or not isinstance(value, kinds):
        raise LucioleError(f"{needed} is needed, found {type(value).__name__}")


class DefinitionError(TypeError):
    """An operator class is declared wrongly; raised when it is created, not when used."""


class GraphError(LucioleError, ValueError):
    """An edit that would leave the graph inconsistent."""


class ShapeError(LucioleError, ValueError):
    """The operands of an operator do not fit together."""


class UnrankedError(ShapeError):
    """A rule asks for axes of a tensor of which not even their number is known."""


class UnsupportedError(LucioleError, NotImplementedError):
    """A model needs something that is known but not done; ``missing`` lists every such thing."""

    def __init__(self, message: str, missing: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.missing = [printable(what) for what in missing or (message,)]


def missing_extra(need: str, extra: str) -> LucioleError:
    """Make the error where an extra's packages are missing, with the command that installs them."""
    return LucioleError(f"{need}: pip install {_source_of(extra)}")


def _source_of(extra: str) -> str:
    """Return the place that pip installs an extra from: the index, the wheel or the sources that
    luciole came from.
    """
    from importlib import metadata  # an error alone pays for the import

    sources = f'".[{extra}]" in the folder of luciole\'s sources'
    try:
        installed = metadata.distribution("luciole")
    except metadata.PackageNotFoundError:
        return sources
    if "Download-URL" in installed.metadata:
        return f'"luciole[{extra}]"'
    origin = json.loads(installed.read_text("direct_url.json") or "{}")
    if "archive_info" not in origin:
        return sources
    return f'"luciole[{extra}] @ {printable(origin["url"])}"'
