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

from luciole.kernels.jit.compiling import compiled, in_c_library, inline, merged
from luciole.kernels.jit.scalars import I64, call, intrinsic, types

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
def _number(typing_context: Any, address: Any) -> Any:
    """The int64 at an address."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(builder.inttoptr(args[0], I64.as_pointer()))

    return types.int64(types.int64), generate


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
    at = state.ctypes.data
    row, threads, arrived = state[TABLE], state[THREADS], state[BEFORE]
    for _ in range(state[ROWS]):
        share = row + 8 + 16 * thread
        if _number(share):
            call(_number(share), _number(share + 8))
        if _number(row):
            arrived += threads
            atomic_add(at + 8 * ARRIVED, 1)
            _wait(at + 8 * ARRIVED, arrived, state[YIELD])
        row += 8 + 16 * threads


def _begin(state: Any, table: Any) -> Any:
    at = state.ctypes.data
    state[TABLE], state[ROWS] = table.ctypes.data, table.shape[0]
    state[BEFORE] = atomic_load(at + 8 * ARRIVED)
    atomic_add(at + 8 * ROUND, 1)
    return atomic_load(at + 8 * ASLEEP)


def _lead(state: Any) -> None:
    _take_part(state, 0)


def _follow(state: Any, thread: Any, seen: Any) -> Any:
    at, looks = state.ctypes.data, 0
    while looks < PATIENCE:
        now = atomic_load(at + 8 * ROUND)
        if now == seen:
            looks += 1
            continue
        if state[STOP]:
            return -1
        _take_part(state, thread)
        seen, looks = now, 0
    return seen


def _lie_down(state: Any, seen: Any) -> Any:
    at = state.ctypes.data
    atomic_add(at + 8 * ASLEEP, 1)
    return atomic_load(at + 8 * ROUND) == seen


def _get_up(state: Any) -> None:
    atomic_add(state.ctypes.data + 8 * ASLEEP, -1)


def new_state(threads: int) -> Integers:
    """The state of a crew."""
    block = np.zeros(10 * LINE, np.int64)
    start = -block.ctypes.data % 64 // 8
    state = block[start : start + 9 * LINE]
    state[THREADS], state[YIELD] = threads, in_c_library("sched_yield")
    return state


@dataclass(frozen=True)
class Loops:
    """The compiled loops; all take the state first and let other threads of Python run."""

    begin: Callable[[Integers, Integers], int]
    """Start a round on a table; gives the number of threads that must be woken."""
    lead: Callable[[Integers], None]
    """Do the first thread's share, and wait for the others where they meet."""
    follow: Callable[[Integers, int, int], int]
    """Take part in rounds until none comes for a while; gives the last one's number, or -1 when
    told to stop."""
    lie_down: Callable[[Integers, int], bool]
    """Count as asleep; gives whether there still is no new round."""
    get_up: Callable[[Integers], None]
    """Count as awake again."""


@functools.cache
def loops() -> Loops:
    """Compile the loops, or read them from the cache."""
    state = "int64[::1]"
    return Loops(
        compiled(f"int64({state}, int64[:,::1])", _begin),
        compiled(f"void({state})", _lead),
        compiled(f"int64({state}, int64, int64)", _follow),
        compiled(f"boolean({state}, int64)", _lie_down),
        compiled(f"void({state})", _get_up),
    )
