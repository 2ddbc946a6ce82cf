"""Compiled steps that are run a number of times, on one element of each list after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from luciole.ir import Array
from luciole.kernels import jit
from luciole.kernels.core.memory import Memory, reach, turns
from luciole.kernels.core.registry import NativeStep
from luciole.kernels.jit.record import Record, reader
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


_WHEN = ("first", "reads", "writes", "last")
"""The fields of ``Loop`` and of its record."""

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
        rows = [Call(kernel=step.address, record=_whole(step.record)) for step in body]
        places = {name: self._moves(name, count, memory) for name in _WHEN}
        record = LoopRecord(count=count, calls=len(rows), steps=memory.table(rows, Call), **places)
        memory.arrays += [array for step in body for array in (step.record, *step.owns)]
        return memory.step(_loop.address, record)

    def _moves(self, when: str, count: int, memory: Memory) -> int:
        parts: Sequence[Part] = getattr(self, when)
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


@jit.kernel
def _loop(r: LoopRecord) -> None:
    _move_all(r.first, 0)
    for step in range(r.count):
        _move_all(r.reads, step)
        for row in range(r.calls):
            call = _call_at(r.steps, row)
            jit.call(call.kernel, call.record)
        _move_all(r.writes, step)
    _move_all(r.last, 0)
