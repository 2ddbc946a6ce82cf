"""Show people that kernels are compiled, where that takes more than a second."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from types import TracebackType

PATIENCE = 1.0
"""Seconds before anything is shown."""

_always = False
"""Whether a line is written without a terminal, too."""


def always_show() -> None:
    """Write a line in this process without a terminal, too."""
    global _always
    _always = True


class Waiting:
    """A line on standard error that counts kernels and goes at the end; nothing without a terminal.

    Where the line would break others (progress bars, a file), it is written once and stays.
    """

    def __init__(self, total: int) -> None:
        self._total, self._done = total, 0
        self._begun = time.monotonic()
        self._length = 0

    def __enter__(self) -> Waiting:
        return self

    def advance(self) -> None:
        """Count a kernel that is compiled."""
        self._done += 1
        if time.monotonic() - self._begun >= PATIENCE:
            self._show()

    def _show(self) -> None:
        text = f"luciole: compiling kernels, {self._done} of {self._total}"
        if _goes_away():
            self._length = len(text)
            print(f"\r{text}", end="", file=sys.stderr, flush=True)
        elif (_is_terminal() or _always) and not self._length:
            self._length = len(text)
            print(f"luciole: compiling {self._total} kernels", file=sys.stderr, flush=True)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._length and _goes_away():
            print(f"\r{self._length * ' '}\r", end="", file=sys.stderr, flush=True)


def _goes_away() -> bool:
    """Return whether the line is written over others of its own."""
    return _is_terminal() and sys.stderr is sys.__stderr__


def _is_terminal() -> bool:
    with suppress(AttributeError, ValueError):  # there is none, or a closed one
        return sys.stderr.isatty()
    return False
