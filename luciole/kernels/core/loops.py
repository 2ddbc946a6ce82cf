"""Compiled steps that are run again and again: a number of times, on one element of each list after
the other, or as long as a condition holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from luciole.ir import Array, LucioleError
from luciole.kernels import jit
from luciole.kernels.core.memory import Memory, reach, turns
from luciole.kernels.core.registry import NativeStep
from luciole.kernels.jit.record import Record, reader
from luciole.kernels.jit.vector.conversions import Kind, integers_at
from luciole.kernels.jit.vector.moves import copy


class Move(Record):
    """Bytes to copy; at step i both addresses lie i times their step further on."""

    source: int
    to: int
    size: int
    source_step: int
    to_step: int


class Moves(Record):
    """A table of ``Move``."""

    table: int
    count: int


class Call(Record):
    """A kernel and its record."""

    kernel: int
    record: int


class LoopRecord(Record):
    """How often the steps are run, and addresses: of tables of ``Call`` and of ``Moves`` that are
    made before all steps, before and after each step, and behind all.
    """

    count: int
    calls: int
    steps: int
    first: int
    reads: int
    writes: int
    last: int


class RepeatRecord(Record):
    """How often steps are run at most, where the condition is, how many steps find it, and
    addresses: of tables of ``Call``, and of ``Moves`` that are made before all steps, before the
    condition is asked, behind each turn, and behind all.

    ``left`` is written: how many more turns were allowed, 0 where the condition still held.
    """

    most: int
    condition: int
    asked: int
    asks: int
    calls: int
    steps: int
    first: int
    shown: int
    writes: int
    last: int
    left: int


BYTE = int(Kind.UINT8)

_move_at, _moves_at, _call_at = reader(Move), reader(Moves), reader(Call)


@dataclass(frozen=True)
class Part:
    """Arrays to copy, (from, to): whole ones, or an element of a list at each step where one of
    them is such a list.
    """

    source: Array
    to: Array

    def move(self, steps: int) -> Move:
        """Describe the copies of ``steps`` steps. Raises ExecutionError for bytes outside."""
        size = min(self.source.nbytes, self.to.nbytes)
        on = [size if array.nbytes > size else 0 for array in (self.source, self.to)]
        source, to = (
            reach(array, size, turns(steps, step))
            for array, step in zip((self.source, self.to), on, strict=True)
        )
        return Move(source=source, to=to, size=size, source_step=on[0], to_step=on[1])


@dataclass(frozen=True)
class Loop:
    """What is copied when: before all steps, before and after each step, and behind all."""

    first: Sequence[Part]
    reads: Sequence[Part]
    writes: Sequence[Part]
    last: Sequence[Part]

    def step(self, body: Sequence[NativeStep], count: int) -> NativeStep:
        """Make the step that runs the steps of a body ``count`` times."""
        memory = Memory()
        record = LoopRecord(
            count=count,
            calls=len(body),
            steps=_calls(body, memory),
            first=_moves(self.first, memory, count),
            reads=_moves(self.reads, memory, count),
            writes=_moves(self.writes, memory, count),
            last=_moves(self.last, memory, count),
        )
        return memory.step(_loop.address, record)


@dataclass(frozen=True)
class Repeat:
    """What is copied when: before all turns, before the condition is asked, after each turn, and
    behind all; ``condition`` holds one truth value.
    """

    first: Sequence[Part]
    shown: Sequence[Part]
    writes: Sequence[Part]
    last: Sequence[Part]
    condition: Array

    def step(self, asks: Sequence[NativeStep], body: Sequence[NativeStep], most: int) -> NativeStep:
        """Make the step that runs a body while ``asks`` find that the condition holds; its check
        raises LucioleError where that goes on for ``most`` turns.
        """
        memory = Memory()
        memory.arrays.append(self.condition)
        record = RepeatRecord(
            most=most,
            condition=_whole(self.condition),
            asked=len(asks),
            asks=_calls(asks, memory),
            calls=len(body),
            steps=_calls(body, memory),
            first=_moves(self.first, memory),
            shown=_moves(self.shown, memory),
            writes=_moves(self.writes, memory),
            last=_moves(self.last, memory),
            left=0,
        )
        step = memory.step(_repeat.address, record)

        def check() -> None:
            if not step.record[RepeatRecord.place("left")]:
                raise goes_on(most)

        return replace(step, check=check)


def goes_on(limit: int) -> LucioleError:
    """Make the error of a loop that does not end within a limit."""
    return LucioleError(f"the loop goes on after {limit} steps: raise loop_limit")


def _calls(steps: Sequence[NativeStep], memory: Memory) -> int:
    """Keep steps and all that they own, and return the address of their table."""
    memory.arrays += [array for step in steps for array in (step.record, *step.owns)]
    rows = [Call(kernel=step.address, record=_whole(step.record)) for step in steps]
    return memory.table(rows, Call)


def _moves(parts: Sequence[Part], memory: Memory, count: int = 1) -> int:
    """Keep the copies of ``count`` steps and what they touch, and return their address."""
    memory.arrays += [array for part in parts for array in (part.source, part.to)]
    moves = [part.move(count) for part in parts]
    return memory.record(Moves(table=memory.table(moves, Move), count=len(moves)))


def _whole(array: Array) -> int:
    return reach(array, array.nbytes)


@jit.inline
def _move_all(place: int, step: int) -> None:
    """Make the copies of a table for one step."""
    moves = _moves_at(place, 0)
    for row in range(moves.count):
        move = _move_at(moves.table, row)
        copy(move.to + step * move.to_step, move.source + step * move.source_step, move.size)


@jit.inline
def _run_all(calls: int, count: int) -> None:
    """Run the kernels of a table."""
    for row in range(count):
        call = _call_at(calls, row)
        jit.call(call.kernel, call.record)


@jit.kernel
def _loop(r: LoopRecord) -> None:
    _move_all(r.first, 0)
    for step in range(r.count):
        _move_all(r.reads, step)
        _run_all(r.steps, r.calls)
        _move_all(r.writes, step)
    _move_all(r.last, 0)


@jit.kernel
def _repeat(r: RepeatRecord) -> None:
    _move_all(r.first, 0)
    left, holds = r.most, True
    while left and holds:
        _move_all(r.shown, 0)
        _run_all(r.asks, r.asked)
        holds = integers_at(r.condition, BYTE)[0] != 0
        if holds:
            _run_all(r.steps, r.calls)
            _move_all(r.writes, 0)
            left -= 1
    if left:
        _move_all(r.last, 0)
    r.left = left
