"""Threads that share the steps of a plan."""

from __future__ import annotations

import threading
import weakref

import numpy as np
from numpy.typing import NDArray

from luciole.kernels.jit import threads as shared
from luciole.kernels.jit.threads import Loops, loops

Integers = NDArray[np.int64]


class Crew:
    """The caller's thread and ``threads - 1`` others, which spin between steps and for a moment
    between runs, then sleep.

    When another program takes a core that a thread spins on, a run can take milliseconds longer.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._loops = loops()
        self._state = shared.new_state(threads)
        self._wake = [threading.Event() for _ in range(threads - 1)]
        others = [
            threading.Thread(target=_work, args=(self._loops, self._state, i + 1, e), daemon=True)
            for i, e in enumerate(self._wake)
        ]
        for other in others:
            other.start()
        self.close = weakref.finalize(self, _stop, self._state, self._wake, others)

    def run(self, table: Integers) -> None:
        """Run a table of steps, see ``luciole.kernels.jit.threads``."""
        state = self._state.ctypes.data
        if self._loops.begin(state, table.ctypes.data, len(table)):
            for event in self._wake:
                event.set()
        self._loops.lead(state)


def _work(run: Loops, state: Integers, thread: int, wake: threading.Event) -> None:
    seen, at = 0, state.ctypes.data
    while True:
        seen = run.follow(at, thread, seen)
        if seen < 0:
            return
        wake.clear()
        if run.lie_down(at, seen) == 0:
            wake.wait()
        run.get_up(at)


def _stop(state: Integers, wake: list[threading.Event], others: list[threading.Thread]) -> None:
    state[shared.STOP] = 1
    state[shared.ROUND] += 1
    for event in wake:
        event.set()
    for other in others:
        other.join()
