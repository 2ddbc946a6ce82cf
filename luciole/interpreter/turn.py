"""Let one run of an interpreter go on at a time, because a run writes where the next one reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident

from luciole.interpreter import forks
from luciole.interpreter.errors import BusyError


class Turn:
    """The turn of interpreters that share variables and threads: one of them runs at a time.

    ``taken`` is looked at and set without a call or a loop in between: there alone Python (since
    3.11) lets other threads run and handles interrupts, so that nothing comes between. A lock would
    take 90 ns.
    """

    def __init__(self) -> None:
        self.taken = False
        self._inside: int | None = None
        self._left_behind = False
        forks.tell(self)

    def __enter__(self) -> None:
        """Take the turn. Raises BusyError where it is taken."""
        if self.taken:
            raise self.refusal()
        self.taken = True

    def __exit__(self, *_: object) -> None:
        self.taken = False

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Allow functions that are called during this run to read and write tensors."""
        self._inside = get_ident()
        try:
            yield
        finally:
            self._inside = None

    def check_inside(self) -> None:
        """Raise BusyError unless the caller is watching the run that has the turn."""
        if self._inside != get_ident():
            raise self.refusal()

    def refusal(self) -> BusyError:
        """Explain why the turn cannot be taken."""
        if self._left_behind:
            return BusyError(
                "the interpreter was running in another thread when the process was forked: "
                "make another one of its model"
            )
        return BusyError(
            "the interpreter is running already, in another thread or around this call: "
            "each thread, observer and custom operator needs one of its own"
        )

    def after_fork(self) -> None:
        """Note that a run which another thread was doing never ends here."""
        self._left_behind = self.taken and self._inside != get_ident()
