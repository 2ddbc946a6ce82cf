"""Compile what is missing together: numba compiles one function at a time, so processes that are
forked from this one share the work, and hand it the machine code.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Protocol, TypeVar

from numba.core.compiler_lock import global_compiler_lock

from luciole.kernels.jit.waiting import Waiting

R = TypeVar("R")

MOST = 16
"""Processes at most: each holds what numba needs, some 40 MB."""

PATIENCE = 120.0
"""Seconds without any function, after which processes are given up: one that was forked while a
thread held a lock waits for ever.
"""

_TICKET = 2
"""Bytes of a function's number."""


class Compilable(Protocol):
    """A function, as ``compiling.Function`` is one."""

    name: str

    def is_there(self) -> bool:
        """Return whether it was compiled before."""

    def compile(self) -> tuple[str, bytes]:
        """Compile it; returns its name as C calls it, and its object file."""

    def keep(self, symbol: str, code: bytes) -> None:
        """Load the machine code, and put it into the cache."""


_MISSING: ContextVar[dict[str, Compilable] | None] = ContextVar("missing", default=None)


def is_put_off(function: Compilable) -> bool:
    """Return whether a function is compiled later: where what is built now is built again."""
    missing = _MISSING.get()
    if missing is None or function.is_there():
        return False
    missing[function.name] = function
    return True


def with_compiled(build: Callable[[], R]) -> R:
    """Build something of compiled functions. Those that are missing have the address 0 at first;
    they are compiled together, and it is built again.
    """
    if _MISSING.get() is not None:
        return build()  # a part of what is built again
    missing: dict[str, Compilable] = {}
    token = _MISSING.set(missing)
    try:
        made = build()
    finally:
        _MISSING.reset(token)
    if not missing:
        return made
    del made
    compile_all(list(missing.values()))
    return build()


def compile_all(functions: Sequence[Compilable]) -> None:
    """Compile functions on all cores. What is not done by the end, whyever, is compiled when its
    address is asked for, where errors show.
    """
    workers = min(len(functions), cores(), MOST)
    with Waiting(len(functions)) as waiting:
        if workers > 1 and sys.platform == "linux":
            with suppress(OSError), _Crew(functions, waiting) as crew:
                crew.work(workers)
            return
        for function in functions:
            with suppress(Exception):
                function.keep(*function.compile())
            waiting.advance()


def cores() -> int:
    """Count the cores that this process may use; 1 where the system does not say."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1


class _Crew:
    """Processes that take functions' numbers from a pipe, and say the machine code in another."""

    def __init__(self, functions: Sequence[Compilable], waiting: Waiting) -> None:
        self._functions, self._waiting = functions, waiting
        self._tickets, writable = os.pipe()
        with os.fdopen(writable, "wb") as file:
            file.write(b"".join(n.to_bytes(_TICKET) for n in range(len(functions))))
        self._running: dict[Connection, int] = {}

    def __enter__(self) -> _Crew:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._tickets)
        for answers, process in self._running.items():
            answers.close()
            with suppress(OSError):
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)

    def work(self, workers: int) -> None:
        """Have everything compiled."""
        for _ in range(workers):
            self._fork()
        while self._running and (ready := wait(list(self._running), PATIENCE)):
            for answers in [a for a in self._running if a in ready]:
                self._take(answers)

    def _fork(self) -> None:
        answers, said = Pipe(duplex=False)
        with global_compiler_lock, warnings.catch_warnings():
            # of threads, which do not go on in the process: it uses nothing of theirs
            warnings.simplefilter("ignore", DeprecationWarning)
            process = os.fork()
            if process == 0:
                self._compile(said)
        said.close()
        self._running[answers] = process

    def _compile(self, said: Connection) -> None:
        """Compile functions that no other process took, and end this one."""
        try:
            gc.disable()
            while ticket := os.read(self._tickets, _TICKET):
                number = int.from_bytes(ticket)
                said.send((number, *self._functions[number].compile()))
        finally:
            os._exit(0)

    def _take(self, answers: Connection) -> None:
        """Keep a function that a process hands over, or part with the process."""
        try:
            number, symbol, code = answers.recv()
        except (EOFError, OSError):  # in the middle of it
            os.waitpid(self._running.pop(answers), 0)
            answers.close()
            return
        self._functions[number].keep(symbol, code)
        self._waiting.advance()
