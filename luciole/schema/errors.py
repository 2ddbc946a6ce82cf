"""The base of every error that luciole raises on purpose, and the one for bad bytes."""

from __future__ import annotations

from luciole.schema.printable import printable


class LucioleError(Exception):
    """Something the caller can act on; the message is one line and names who, what and what would
    be right. Texts of files that it quotes do nothing to a terminal: they are escaped here.
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*(printable(a) if isinstance(a, str) else a for a in args))


class FormatError(LucioleError, ValueError):
    """The bytes are not a model file, or are damaged."""


class ChoiceError(LucioleError):
    """Choices of the caller do not go together, or with the model that they are of."""
