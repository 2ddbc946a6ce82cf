"""Evaluate in processes of this machine that may die: a task whose worker does goes to another one.

``concurrent.futures`` is of no use for that: when one of its processes dies, all tasks fail.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from luciole.lquantizer.search.runners import Begin, Outcome, Task, attempted

_ATTEMPTS = 3
"""Workers that may die on a task before it counts as failed, or one after the other as they begin,
before the search does."""
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass
class _Worker:
    """A process, and the task that it is at."""

    process: BaseProcess
    ready: bool = False
    task: tuple[str, Task] | None = None


@dataclass
class Workers:
    """Processes, one thread each. ``notice`` gets a line for each that dies."""

    capacity: int
    begin: Begin
    notice: Callable[[str], None] = print
    _crew: dict[Connection, _Worker] = field(default_factory=dict)
    _waiting: deque[tuple[str, Task]] = field(default_factory=deque)
    _tried: dict[str, int] = field(default_factory=dict)
    _ended: deque[Outcome] = field(default_factory=deque)
    _stillborn: int = 0

    def __post_init__(self) -> None:
        """Start the processes."""
        self._context = multiprocessing.get_context("spawn")
        for _ in range(self.capacity):
            self._start()

    def submit(self, key: str, task: Task) -> None:
        """Take a task."""
        self._waiting.append((key, task))
        self._hand_out()

    def next(self) -> Outcome:
        """Wait for the next task to end, be it that its workers died again and again."""
        while not self._ended:
            for ready in wait(list(self._crew)):
                assert isinstance(ready, Connection), "only these are waited for"
                self._listen(ready)
            self._hand_out()
        return self._ended.popleft()

    def close(self) -> None:
        """End all processes."""
        for connection, worker in self._crew.items():
            connection.close()
            worker.process.terminate()
            worker.process.join(5)
        self._crew.clear()

    def _start(self) -> None:
        before = {name: os.environ.get(name) for name in _THREADS}
        os.environ.update(dict.fromkeys(_THREADS, "1"))  # read when NumPy is imported
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_work, args=(theirs, self.begin), daemon=True)
        process.start()
        theirs.close()
        self._crew[ours] = _Worker(process)
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})

    def _hand_out(self) -> None:
        for connection, worker in list(self._crew.items()):
            if worker.ready and worker.task is None and self._waiting:
                worker.task = self._waiting.popleft()
                try:
                    connection.send(worker.task)
                except OSError:  # it has just died, which listening will tell
                    continue

    def _listen(self, connection: Connection) -> None:
        worker = self._crew[connection]
        try:
            outcome: Outcome | None = connection.recv()
        except (EOFError, OSError):
            self._replace(connection, worker)
            return
        worker.ready, self._stillborn = True, 0
        if outcome is not None:
            worker.task = None
            self._ended.append(outcome)

    def _replace(self, connection: Connection, worker: _Worker) -> None:
        """Start another worker, which repeats the dead one's task."""
        worker.process.join()
        del self._crew[connection]
        code, task = worker.process.exitcode, worker.task
        self._stillborn += not worker.ready
        if self._stillborn == _ATTEMPTS:
            self._ended.append(Outcome("", error=f"a worker ended with {code} as it began"))
            return
        self.notice(f"worker {worker.process.pid} died ({code}); another one goes on")
        self._start()
        if task is not None:
            self._resubmit(*task)

    def _resubmit(self, key: str, task: Task) -> None:
        self._tried[key] = self._tried.get(key, 0) + 1
        if self._tried[key] >= _ATTEMPTS:
            self._ended.append(Outcome(key, error=f"{_ATTEMPTS} workers died on it"))
        else:
            self._waiting.appendleft((key, task))


def _work(connection: Connection, begin: Begin) -> None:
    """Do tasks until nobody gives any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for who gives the tasks
    try:
        work = begin()
        connection.send(None)
        while True:
            key, task = connection.recv()
            connection.send(attempted(key, work, task, str(os.getpid())))
    except (EOFError, OSError):
        return  # who gave the tasks is gone
