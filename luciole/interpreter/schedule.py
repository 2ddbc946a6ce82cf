"""Run steps one after the other, compiled ones that follow each other in one call."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from luciole.interpreter.contents import Contents
from luciole.interpreter.crew import Crew
from luciole.interpreter.steps import Run, Step, grouped, run_reference
from luciole.kernels.core.meter import Meter


class Schedule:
    """Steps in the order in which they run. ``calls`` do their work, one after the other."""

    def __init__(
        self, steps: Sequence[Step], crew: Crew | None, contents: Contents, meter: Meter
    ) -> None:
        self._working = [not step.nothing_to_do for step in steps]
        self._groups = grouped(steps, crew)
        self.calls: list[Callable[[], object]] = [
            g.call if isinstance(g, Run) else partial(run_reference, g, contents, meter)
            for g in self._groups
        ]

    def run(self) -> None:
        """Run every step."""
        for call in self.calls:
            call()

    def run_timed(self) -> NDArray[np.int64]:
        """Run every step and return the nanoseconds that each took.

        The clock is read between native steps by compiled code, which adds some 30 ns to each.
        """
        times = [_timed(group, call) for group, call in zip(self._groups, self.calls, strict=True)]
        elapsed = np.zeros(len(self._working), np.int64)
        elapsed[self._working] = np.concatenate([*times, []])
        return elapsed


def _timed(group: Run | Step, call: Callable[[], object]) -> NDArray[np.int64]:
    if isinstance(group, Run):
        return group.run_timed()
    begin = time.perf_counter_ns()
    call()
    return np.array([time.perf_counter_ns() - begin], np.int64)
