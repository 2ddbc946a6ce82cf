"""Steps shared by several threads: compiled loops that wait for each other by spinning.

A table has one row per step: whether all threads meet after it, then (kernel, record) for every
thread, 0 where a thread has nothing to do. ``state`` is a block of int64 numbers, each alone in its
cache line: the number of the present round, arrivals at meetings so far, threads asleep, and what
the round is about.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from luciole.kernels.jit.compiling import compiled, inline, merged
from luciole.kernels.jit.objects import in_c_library
from luciole.kernels.jit.scalars import I64, call, intrinsic, number, set_number, types

Integers = NDArray[np.int64]

LINE = 8
"""Numbers in a cache line of 64 bytes."""

ROUND, ARRIVED, ASLEEP, BEFORE, TABLE, ROWS, THREADS, STOP, YIELD = range(0, 9 * LINE, LINE)
"""Where the state's numbers stand; ``BEFORE`` is what ``ARRIVED`` was when the round began."""

POLITE = 1_000
"""Looks, while waiting for others, after which each leaves the core to whom it may concern."""

PATIENCE = 100_000
"""Looks at the round's number, about a nanosecond each, before a thread goes to sleep."""


@intrinsic
def atomic_load(typing_context: Any, address: Any) -> Any:
    """The int64 at an address, sequentially consistent."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load_atomic(builder.inttoptr(args[0], I64.as_pointer()), "seq_cst", 8)

    return types.int64(types.int64), generate


@intrinsic
def atomic_add(typing_context: Any, address: Any, number: Any) -> Any:
    """Add to the int64 at an address, sequentially consistent; gives the sum."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = builder.inttoptr(args[0], I64.as_pointer())
        return builder.add(builder.atomic_rmw("add", place, args[1], "seq_cst"), args[1])

    return types.int64(types.int64, types.int64), generate


@intrinsic
def _call_nothing(typing_context: Any, address: Any) -> Any:
    """Call the function at an address without arguments."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        function = ir.FunctionType(ir.IntType(32), [])
        builder.call(builder.inttoptr(args[0], function.as_pointer()), [])
        return context.get_dummy_value()

    return types.void(types.int64), generate


@inline
def _wait(place: Any, wanted: Any, leave_core: Any) -> Any:
    looks = 0
    while atomic_load(place) < wanted:
        looks += 1
        if looks > POLITE:
            _call_nothing(leave_core)


@merged
def _take_part(state: Any, thread: Any) -> Any:
    row, threads = number(state + 8 * TABLE), number(state + 8 * THREADS)
    arrived = number(state + 8 * BEFORE)
    for _ in range(number(state + 8 * ROWS)):
        share = row + 8 + 16 * thread
        if number(share):
            call(number(share), number(share + 8))
        if number(row):
            arrived += threads
            atomic_add(state + 8 * ARRIVED, 1)
            _wait(state + 8 * ARRIVED, arrived, number(state + 8 * YIELD))
        row += 8 + 16 * threads


def _begin(state: Any, table: Any, rows: Any) -> Any:
    set_number(state + 8 * TABLE, table)
    set_number(state + 8 * ROWS, rows)
    set_number(state + 8 * BEFORE, atomic_load(state + 8 * ARRIVED))
    atomic_add(state + 8 * ROUND, 1)
    return atomic_load(state + 8 * ASLEEP)


def _lead(state: Any) -> Any:
    _take_part(state, 0)
    return 0


def _follow(state: Any, thread: Any, seen: Any) -> Any:
    looks = 0
    while looks < PATIENCE:
        now = atomic_load(state + 8 * ROUND)
        if now == seen:
            looks += 1
            continue
        if number(state + 8 * STOP):
            return -1
        _take_part(state, thread)
        seen, looks = now, 0
    return seen


def _lie_down(state: Any, seen: Any) -> Any:
    atomic_add(state + 8 * ASLEEP, 1)
    return seen - atomic_load(state + 8 * ROUND)


def _get_up(state: Any) -> Any:
    return atomic_add(state + 8 * ASLEEP, -1)


def new_state(threads: int) -> Integers:
    """The state of a crew."""
    block = np.zeros(10 * LINE, np.int64)
    start = -block.ctypes.data % 64 // 8
    state = block[start : start + 9 * LINE]
    state[THREADS], state[YIELD] = threads, in_c_library("sched_yield")
    return state


@dataclass(frozen=True)
class Loops:
    """The compiled loops; all take the address of the state first."""

    begin: Callable[..., int]
    """(state, table, rows): start a round; gives the number of threads that must be woken."""
    lead: Callable[..., int]
    """(state): do the first thread's share, and wait for the others where they meet."""
    follow: Callable[..., int]
    """(state, thread, seen): take part in rounds until none comes for a while; gives the last one's
    number, or -1 when told to stop."""
    lie_down: Callable[..., int]
    """(state, seen): count as asleep; gives 0 if there still is no new round."""
    get_up: Callable[..., int]
    """(state): count as awake again."""


@functools.cache
def loops() -> Loops:
    """Compile the loops, or read them from the cache."""
    return Loops(
        compiled(_begin, 3),
        compiled(_lead, 1),
        compiled(_follow, 3),
        compiled(_lie_down, 2),
        compiled(_get_up, 1),
    )
