"""Steps shared by a thread pool: compiled loops that wait for each other at barriers, by spinning.

A table has one row per step: whether all threads meet after it, then (kernel, record) for every
thread, 0 where a thread has nothing to do. ``state`` is the address of a ``State``, with a
``Library`` and room for a mutex and a condition variable behind it.

A round is one call, and what a thread does in its life is one too: Python is not needed to wake
others, and no interrupt comes between the beginning of a round and its end.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from luciole.kernels.jit.compiling import compiled, inlined, separate
from luciole.kernels.jit.emits import Address, Builder, Int64, emits
from luciole.kernels.jit.objects import in_c_library
from luciole.kernels.jit.record import Record, reader
from luciole.kernels.jit.scalars import I64, call, number

Integers = NDArray[np.int64]

LINE = 64
"""Bytes of a cache line."""


class State(Record, spacing=LINE):
    """The numbers by which threads meet, each alone in its cache line."""

    round: int
    """The number of the present round, and arrivals at meetings so far."""
    arrived: int
    asleep: int
    """Threads asleep."""
    before: int
    """What ``arrived`` was when the round began."""
    table: int
    met: int
    """How many rows the table has up to the last meeting. Behind it only the first thread is at
    work, and the table may go when it has come to the end.
    """
    threads: int
    stop: int


class Library(Record):
    """The addresses of the C library's functions."""

    leave_core: int
    lock: int
    unlock: int
    wait: int
    wake: int


_state_at, _library_at = reader(State), reader(Library)

ROUND, ARRIVED, ASLEEP = (State.offset(name) for name in ("round", "arrived", "asleep"))
"""Where the atomic numbers stand, in bytes."""

LIBRARY = State.layout.itemsize
"""Where the library stands behind the state, in bytes."""

MUTEX, CONDITION = LIBRARY + 2 * LINE, LIBRARY + 4 * LINE
"""Where threads sleep: 128 bytes for each object, more than any system's takes."""

SIZE = LIBRARY + 6 * LINE

POLITE = 1_000
"""Looks, while waiting for others, after which each leaves the core to whom it may concern."""

PATIENCE = 100_000
"""Looks at the round's number, about a nanosecond each, before a thread goes to sleep."""

_C_FUNCTIONS = {
    "leave_core": "sched_yield",
    "lock": "pthread_mutex_lock",
    "unlock": "pthread_mutex_unlock",
    "wait": "pthread_cond_wait",
    "wake": "pthread_cond_broadcast",
}
"""By their fields of ``Library``."""


@emits
def atomic_load(builder: Builder, address: Address) -> Int64:
    """Load the int64 at an address, sequentially consistent."""
    return builder.load_atomic(builder.inttoptr(address, I64.as_pointer()), "seq_cst", 8)


@emits
def atomic_add(builder: Builder, address: Address, number: Int64) -> Int64:
    """Add to the int64 at an address, sequentially consistent; gives the sum."""
    place = builder.inttoptr(address, I64.as_pointer())
    return builder.add(builder.atomic_rmw("add", place, number, "seq_cst"), number)


@emits
def _call_c(builder: Builder, function: Address, first: Int64, second: Int64) -> None:
    """Call a function of the C library; one that takes fewer arguments does not look at the
    others.
    """
    kind = ir.FunctionType(ir.IntType(32), [I64, I64])
    builder.call(builder.inttoptr(function, kind.as_pointer()), [first, second])


@separate
def _wait(place: int, least: int, leave_core: int) -> None:
    looks = 0
    while atomic_load(place) < least:
        looks += 1
        if looks > POLITE:
            _call_c(leave_core, 0, 0)


@inlined
def _take_part(state: int, thread: int, rows: int) -> None:
    known, library = _state_at(state, 0), _library_at(state + LIBRARY, 0)
    row, threads, arrived = known.table, known.threads, known.before
    for _ in range(rows):
        share = row + 8 + 16 * thread
        if number(share):
            call(number(share), number(share + 8))
        if number(row):
            arrived += threads
            atomic_add(state + ARRIVED, 1)
            _wait(state + ARRIVED, arrived, library.leave_core)
        row += 8 + 16 * threads


@separate
def _begin(state: int) -> None:
    """Begin a round, and wake who sleeps."""
    library = _library_at(state + LIBRARY, 0)
    atomic_add(state + ROUND, 1)
    if atomic_load(state + ASLEEP):
        _call_c(library.lock, state + MUTEX, 0)
        _call_c(library.wake, state + CONDITION, 0)
        _call_c(library.unlock, state + MUTEX, 0)


@separate
def _sleep(state: int, seen: int) -> None:
    """Wait for a round after the one ``seen`` without taking a core."""
    library = _library_at(state + LIBRARY, 0)
    atomic_add(state + ASLEEP, 1)
    _call_c(library.lock, state + MUTEX, 0)
    while atomic_load(state + ROUND) == seen:
        _call_c(library.wait, state + CONDITION, state + MUTEX)
    _call_c(library.unlock, state + MUTEX, 0)
    atomic_add(state + ASLEEP, -1)


def _lead(state: int, table: int, rows: int, met: int) -> int:
    known = _state_at(state, 0)
    known.table, known.met, known.before = table, met, atomic_load(state + ARRIVED)
    _begin(state)
    _take_part(state, 0, rows)
    return 0


def _follow(state: int, thread: int) -> int:
    known, seen = _state_at(state, 0), 0
    while True:
        looks = 0
        while atomic_load(state + ROUND) == seen and looks < PATIENCE:
            looks += 1
        if looks == PATIENCE:
            _sleep(state, seen)
        seen += 1  # none is left out: all rounds have a meeting, and the next one begins behind it
        if known.stop:
            return 0
        _take_part(state, thread, known.met)


def _end(state: int) -> int:
    _state_at(state, 0).stop = 1
    _begin(state)
    return 0


def new_state(threads: int) -> Integers:
    """Make the state of a thread pool."""
    block = np.zeros(SIZE + LINE, np.uint8)
    start = -block.ctypes.data % LINE
    state = block[start : start + SIZE].view(np.int64)
    begun = dict.fromkeys(State.layout.names or (), 0) | {"threads": threads}
    library = Library(**{name: in_c_library(c) for name, c in _C_FUNCTIONS.items()})
    numbers = np.concatenate([State(**begun).words(), library.words()])
    state[: len(numbers)] = numbers
    for name, place in (("pthread_mutex_init", MUTEX), ("pthread_cond_init", CONDITION)):
        init = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
        init(in_c_library(name))(state.ctypes.data + place, None)
    return state


@dataclass(frozen=True)
class Loops:
    """The compiled loops; all take the address of the state first."""

    lead: Callable[..., int]
    """(state, table, rows, rows up to the last meeting): do a round, with all others."""
    follow: Callable[..., int]
    """(state, thread): take part in rounds, until told to stop."""
    end: Callable[..., int]
    """(state): tell all others to stop."""


@functools.cache
def loops() -> Loops:
    """Compile the loops, or read them from the cache."""
    return Loops(compiled(_lead, 4), compiled(_follow, 2), compiled(_end, 1))
