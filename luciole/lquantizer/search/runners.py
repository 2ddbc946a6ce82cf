"""Run evaluations: here, one after the other. Workers and clusters are runners as well."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from luciole.lquantizer.errors import QuantizeError

Task = Mapping[str, Any]
"""An evaluation in plain values: under a kilobyte for networks of some tens of layers."""
Work = Callable[[Task], Any]
"""Evaluates a task."""
Begin = Callable[[], Work]
"""Makes the evaluator of tasks, once in each worker: it is sent there, so it can be pickled."""


class LostError(QuantizeError):
    """The cluster is gone; what was finished is kept."""


@dataclass(frozen=True)
class Outcome:
    """A task's key, its result or why there is none, the seconds it took, and who did it."""

    key: str
    result: Any = None
    error: str | None = None
    seconds: float = 0.0
    worker: str = ""


class Runner(Protocol):
    """Takes tasks and gives outcomes. A task whose worker died is done again elsewhere."""

    @property
    def capacity(self) -> int:
        """How many tasks can be under way at once."""

    def submit(self, key: str, task: Task) -> None:
        """Take a task."""

    def next(self) -> Outcome:
        """Wait for the next task to end. Raises LostError where nothing can end any more."""

    def close(self) -> None:
        """End all workers."""


class InProcess:
    """Evaluates here, when the outcome is asked for."""

    capacity = 1

    def __init__(self, begin: Begin) -> None:
        self._work = begin()
        self._waiting: deque[tuple[str, Task]] = deque()

    def submit(self, key: str, task: Task) -> None:
        """Take a task."""
        self._waiting.append((key, task))

    def next(self) -> Outcome:
        """Do the first task that waits."""
        key, task = self._waiting.popleft()
        return attempted(key, self._work, task, "here")

    def close(self) -> None:
        """Forget the tasks that wait."""
        self._waiting.clear()


def attempted(key: str, work: Work, task: Task, worker: str) -> Outcome:
    """Do a task; whatever it raises is that task's failure alone."""
    begun = time.perf_counter()
    try:
        result, error = work(task), None
    except Exception as raised:
        text = " ".join(str(raised).split())
        result, error = None, f"{type(raised).__name__}: {text}"
    return Outcome(key, result, error, time.perf_counter() - begun, worker)
