"""Refuse to copy objects that live in the memory of one process."""

from __future__ import annotations

from typing import NoReturn

from luciole.interpreter.errors import NotPickledError


class Uncopied:
    """Base of objects that hold addresses or threads: a copy would work in the memory of the
    other.
    """

    def __reduce__(self) -> NoReturn:
        """Raise NotPickledError."""
        raise NotPickledError(
            f"{type(self).__name__} can be neither pickled nor copied: pickle the model, "
            "and make another one of it"
        )
