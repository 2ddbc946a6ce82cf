"""Threads that share the steps of a plan."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from luciole.interpreter import forks
from luciole.interpreter.errors import InputError
from luciole.interpreter.uncopied import Uncopied
from luciole.kernels.jit.threads import Loops, loops, new_state

Integers = NDArray[np.int64]

_TRIES, _AGAIN = 6, 3
"""Calls of each way at first, and when they are tried again."""
_TRUSTED = 2_000
"""Calls of the quickest before they are."""


class Crew(Uncopied):
    """The caller's thread and ``threads - 1`` others, which spin between steps and for a moment
    between runs, then sleep.

    When another program takes a core that a thread spins on, a run can take milliseconds longer.
    They begin anew in a process that was forked. Raises InputError where the system has no room for
    as many.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._loops = loops()
        self._start()
        forks.tell(self)

    def _start(self) -> None:
        """Start the others."""
        state, others = new_state(self.threads), list[threading.Thread]()
        self._address: int | None = state.ctypes.data
        self.close = weakref.finalize(self, _stop, self._loops, state, others)
        for number in range(1, self.threads):
            follow = partial(self._loops.follow, self._address, number)
            others.append(threading.Thread(target=follow, daemon=True))
            try:
                others[-1].start()
            except RuntimeError as error:
                others.pop()
                self.close()
                raise InputError(
                    f"num_threads is {self.threads}, the system starts {number}: {error}"
                ) from None

    def runner(self, table: Integers) -> Callable[[], object]:
        """Return a function that runs a table of steps, see ``luciole.kernels.jit.threads``."""
        met = int(np.flatnonzero(table[:, 0])[-1]) + 1
        return partial(self._run, table, (table.ctypes.data, len(table), met))

    def _run(self, table: Integers, round_: tuple[int, int, int]) -> None:
        if self._address is None:
            self._start()
        self._loops.lead(self._address, *round_)

    def after_fork(self) -> None:
        """Forget threads that do not go on in this process."""
        self.close.detach()
        self._address = None


class Quicker:
    """Calls one of several functions that do the same, the one that was the quickest when each of
    them was last tried: in the first calls, and some again after many more. How much it costs that
    cores read what others wrote differs between machines, and on shared ones from hour to hour.
    """

    def __init__(self, *ways: Callable[[], object]) -> None:
        self._ways = ways
        self._begin(_TRIES)

    def _begin(self, tries: int) -> None:
        """Try each way so many times, the last one first, without others in between: what stands in
        the cores' caches counts.
        """
        self._tries, self._left = tries, tries * len(self._ways)
        self._least = [float("inf")] * len(self._ways)

    def __call__(self) -> None:
        """Call the quickest, or one that is tried."""
        self._left -= 1
        if self._left >= 0:
            self._try(self._left // self._tries)
        elif self._left > -_TRUSTED:
            self._quickest()
        else:
            self._begin(_AGAIN)
            self._quickest()

    def _try(self, place: int) -> None:
        begun = time.perf_counter_ns()
        self._ways[place]()
        self._least[place] = min(self._least[place], time.perf_counter_ns() - begun)
        self._quickest = self._ways[self._least.index(min(self._least))]


def _stop(run: Loops, state: Integers, others: list[threading.Thread]) -> None:
    run.end(state.ctypes.data)
    for other in others:
        other.join()
