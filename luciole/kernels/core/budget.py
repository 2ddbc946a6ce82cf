"""The steps that all loops of a run may take together, and when compiled ones let Python in."""

from __future__ import annotations

import time

from luciole.ir import LucioleError
from luciole.kernels.core.allocation import placed
from luciole.kernels.jit.objects import in_c_library
from luciole.kernels.jit.record import Record

PAUSED, SPENT = 1, 2
"""Why a loop is paused: because it is time to, or because no step is left."""


class Control(Record):
    """State that compiled loops share: how many steps are ``left``; whether one is ``paused``, to
    go on when it is called again, and why; when the clock was looked at first (``since``, 0
    before); and the parts of looking: a function of the C library, a kind of clock, room for the
    time.
    """

    left: int
    paused: int
    since: int
    clock: int
    kind: int
    seconds: int
    nanoseconds: int


_LEFT, _PAUSED, _SINCE = (Control.place(name) for name in ("left", "paused", "since"))


_MOST = 1 << 62
"""Steps that nobody lives to see."""


class Budget:
    """The steps of all WHILE of a run, inner ones included: each takes one of ``limit``.

    ``control`` is what compiled loops take them from. They return from time to time, so that Python
    can handle signals, and go on when they are called again.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        control = Control(
            left=min(max(limit, 0), _MOST),
            paused=0,
            since=0,
            clock=in_c_library("clock_gettime"),
            kind=time.CLOCK_MONOTONIC,
            seconds=0,
            nanoseconds=0,
        )
        self.control = placed(control.words())
        self._words = self.control.data
        self._most = int(self.control[_LEFT])

    def begin(self) -> None:
        """Have all steps again, and forget loops that were given up: a run begins."""
        self._words[_LEFT], self._words[_PAUSED], self._words[_SINCE] = self._most, 0, 0

    def spend(self) -> None:
        """Take a step. Raises LucioleError where none is left."""
        left = self._words[_LEFT]
        if not left:
            raise self._exceeded()
        self._words[_LEFT] = left - 1

    def is_paused(self) -> bool:
        """Return whether a compiled loop waits to be called again. Raises LucioleError where it is
        because no step is left.
        """
        if not self._words[_PAUSED]:
            return False
        if self._words[_PAUSED] == SPENT:
            raise self._exceeded()
        self._words[_SINCE] = 0
        return True

    def _exceeded(self) -> LucioleError:
        return LucioleError(f"the loop goes on after {self.limit} steps in all: raise loop_limit")
