"""Steps shared by several threads: compiled loops that wait for each other by spinning.

A table has one row per step: whether all threads meet after it, then (kernel, record) for every
thread, 0 where a thread has nothing to do. ``state`` is a block of int64 numbers, each alone in its
cache line: the number of the present round, arrivals at meetings so far, threads asleep, and what
the round is about.

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

from luciole.kernels.jit.compiling import compiled, inline, merged
from luciole.kernels.jit.emits import Address, Builder, Int64, emits
from luciole.kernels.jit.objects import in_c_library
from luciole.kernels.jit.scalars import I64, call, number, set_number

Integers = NDArray[np.int64]

LINE = 8
"""Numbers in a cache line of 64 bytes."""

ROUND, ARRIVED, ASLEEP, BEFORE, TABLE, MET, THREADS, STOP = range(0, 8 * LINE, LINE)
"""Where the state's numbers stand: ``BEFORE`` is what ``ARRIVED`` was when the round began, ``MET``
how many rows there are up to the last meeting. Behind it only the first thread is at work, and the
table may go when it has come to the end.
"""

FUNCTIONS = 8 * LINE
"""Where the addresses of the C library's functions begin."""

YIELD, LOCK, UNLOCK, WAIT, WAKE = range(FUNCTIONS, FUNCTIONS + 5)
MUTEX, CONDITION = 10 * LINE, 12 * LINE
"""Where threads sleep: 128 bytes for each object, more than any system's takes."""

SIZE = 14 * LINE

POLITE = 1_000
"""Looks, while waiting for others, after which each leaves the core to whom it may concern."""

PATIENCE = 100_000
"""Looks at the round's number, about a nanosecond each, before a thread goes to sleep."""

_C_FUNCTIONS = (
    "sched_yield",
    "pthread_mutex_lock",
    "pthread_mutex_unlock",
    "pthread_cond_wait",
    "pthread_cond_broadcast",
)
"""In the order of their addresses."""


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


@inline
def _wait(place: int, wanted: int, leave_core: int) -> None:
    looks = 0
    while atomic_load(place) < wanted:
        looks += 1
        if looks > POLITE:
            _call_c(leave_core, 0, 0)


@merged
def _take_part(state: int, thread: int, rows: int) -> None:
    row, threads = number(state + 8 * TABLE), number(state + 8 * THREADS)
    arrived = number(state + 8 * BEFORE)
    for _ in range(rows):
        share = row + 8 + 16 * thread
        if number(share):
            call(number(share), number(share + 8))
        if number(row):
            arrived += threads
            atomic_add(state + 8 * ARRIVED, 1)
            _wait(state + 8 * ARRIVED, arrived, number(state + 8 * YIELD))
        row += 8 + 16 * threads


@inline
def _begin(state: int) -> None:
    """Begin a round, and wake who sleeps."""
    atomic_add(state + 8 * ROUND, 1)
    if atomic_load(state + 8 * ASLEEP):
        _call_c(number(state + 8 * LOCK), state + 8 * MUTEX, 0)
        _call_c(number(state + 8 * WAKE), state + 8 * CONDITION, 0)
        _call_c(number(state + 8 * UNLOCK), state + 8 * MUTEX, 0)


@inline
def _sleep(state: int, seen: int) -> None:
    """Wait for a round after the one ``seen`` without taking a core."""
    atomic_add(state + 8 * ASLEEP, 1)
    _call_c(number(state + 8 * LOCK), state + 8 * MUTEX, 0)
    while atomic_load(state + 8 * ROUND) == seen:
        _call_c(number(state + 8 * WAIT), state + 8 * CONDITION, state + 8 * MUTEX)
    _call_c(number(state + 8 * UNLOCK), state + 8 * MUTEX, 0)
    atomic_add(state + 8 * ASLEEP, -1)


def _lead(state: int, table: int, rows: int, met: int) -> int:
    set_number(state + 8 * TABLE, table)
    set_number(state + 8 * MET, met)
    set_number(state + 8 * BEFORE, atomic_load(state + 8 * ARRIVED))
    _begin(state)
    _take_part(state, 0, rows)
    return 0


def _follow(state: int, thread: int) -> int:
    seen = 0
    while True:
        looks = 0
        while atomic_load(state + 8 * ROUND) == seen and looks < PATIENCE:
            looks += 1
        if looks == PATIENCE:
            _sleep(state, seen)
        seen += 1  # none is left out: all rounds have a meeting, and the next one begins behind it
        if number(state + 8 * STOP):
            return 0
        _take_part(state, thread, number(state + 8 * MET))


def _end(state: int) -> int:
    set_number(state + 8 * STOP, 1)
    _begin(state)
    return 0


def new_state(threads: int) -> Integers:
    """Make the state of a thread pool."""
    block = np.zeros(SIZE + LINE, np.int64)
    start = -block.ctypes.data % 64 // 8
    state = block[start : start + SIZE]
    state[THREADS] = threads
    state[YIELD : WAKE + 1] = [in_c_library(name) for name in _C_FUNCTIONS]
    for name, place in (("pthread_mutex_init", MUTEX), ("pthread_cond_init", CONDITION)):
        init = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
        init(in_c_library(name))(state[place:].ctypes.data, None)
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
