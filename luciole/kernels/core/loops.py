"""Compiled steps that are run again and again: a number of times, on one element of each list after
the other, or as long as a condition holds.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from luciole.ir import Array, LucioleError
from luciole.kernels import jit
from luciole.kernels.core.budget import PAUSED, SPENT, Budget, Control
from luciole.kernels.core.call_table import call_at, table_of
from luciole.kernels.core.contract import NativeStep
from luciole.kernels.core.memory import Memory, reach, turns
from luciole.kernels.jit.record import Record, reader
from luciole.kernels.jit.scalars import nanoseconds
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


class LoopRecord(Record):
    """How often steps are run: ``count`` times, or while the truth value at ``condition`` holds;
    ``calls`` steps, of which the first ``asked`` find it. Addresses of the ``Control`` of all
    loops, of a table of ``Call``, and of ``Moves`` that are made before all turns, when a turn
    begins and ends, and behind all.

    Written are the ``turn``, the ``row`` of the step that is to go on once a pause is over, and how
    ``often`` the clock is looked at: in ``look`` turns again, and when it was ``seen`` last.
    """

    control: int
    count: int
    condition: int
    asked: int
    calls: int
    steps: int
    first: int
    shown: int
    writes: int
    last: int
    turn: int
    row: int
    often: int
    look: int
    seen: int


BYTE = int(Kind.UINT8)

BETWEEN = -1
"""The row of a loop that itself pauses, after a turn."""

PAUSE = 50_000_000
"""Nanoseconds after which a loop returns to Python."""

OFTEN = 2_000_000
"""Nanoseconds between looks at the clock, of which each takes some 25 (more where it is slow)."""

MOST = 1 << 20
"""Turns between looks."""

TIME = Control.offset("seconds")
"""Where there is room for the time."""

_move_at, _moves_at, _control_at = reader(Move), reader(Moves), reader(Control)


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
    """Copies of a loop: before all turns, when a turn begins and ends, and behind all."""

    first: Sequence[Part]
    shown: Sequence[Part]
    writes: Sequence[Part]
    last: Sequence[Part]

    def counted(self, body: Sequence[NativeStep], count: int, budget: Budget) -> NativeStep:
        """Make the step that runs the steps of a body ``count`` times."""
        return self._step([], body, budget, count, None)

    def repeated(
        self,
        asks: Sequence[NativeStep],
        body: Sequence[NativeStep],
        condition: Array,
        budget: Budget,
    ) -> NativeStep:
        """Make the step that runs a body while ``asks`` find that the condition holds, which is one
        truth value.
        """
        return self._step(asks, body, budget, 1, condition)

    def _step(
        self,
        asks: Sequence[NativeStep],
        body: Sequence[NativeStep],
        budget: Budget,
        count: int,
        condition: Array | None,
    ) -> NativeStep:
        memory = Memory([budget.control, *([] if condition is None else [condition])])
        record = LoopRecord(
            control=whole(budget.control),
            count=count,
            condition=0 if condition is None else whole(condition),
            asked=len(asks),
            calls=len(asks) + len(body),
            steps=table_of([*asks, *body], memory),
            first=moves(self.first, memory, count),
            shown=moves(self.shown, memory, count),
            writes=moves(self.writes, memory, count),
            last=moves(self.last, memory, count),
            turn=0,
            row=BETWEEN,
            often=1,
            look=1,
            seen=0,
        )
        steps = (*asks, *body)
        nested = any(step.is_paused is not None for step in steps)
        made = memory.step(_loop(condition is None, nested).address, record)
        check = joined_checks(steps)
        if check is None:
            return replace(made, is_paused=budget.is_paused)

        def is_paused() -> bool:
            try:
                return budget.is_paused()
            except LucioleError:
                with suppress(LucioleError):
                    check()  # so that the next run begins anew
                raise

        return replace(made, is_paused=is_paused, check=check, remembers=True)


def joined_checks(steps: Sequence[NativeStep]) -> Callable[[], None] | None:
    """Join the checks of steps: all are called, and the first error is raised; None where there is
    none.
    """
    checks = [step.check for step in steps if step.check is not None]

    def check() -> None:
        errors = []
        for one in checks:
            try:
                one()
            except LucioleError as error:
                errors.append(error)
        if errors:
            raise errors[0]

    return check if checks else None


def moves(parts: Sequence[Part], memory: Memory, count: int = 1) -> int:
    """Keep the copies of ``count`` steps and the arrays that they touch, and return their
    address.
    """
    memory.arrays += [array for part in parts for array in (part.source, part.to)]
    table = memory.table([part.move(count) for part in parts], Move)
    return memory.record(Moves(table=table, count=len(parts)))


def whole(array: Array) -> int:
    """Return the address of an array, every byte of which is read or written."""
    return reach(array, array.nbytes)


@jit.separate
def move_all(place: int, step: int) -> None:
    """Make the copies of a table for one step."""
    copies = _moves_at(place, 0)
    for row in range(copies.count):
        move = _move_at(copies.table, row)
        copy(move.to + step * move.to_step, move.source + step * move.source_step, move.size)


@jit.inlined
def _begin(r: LoopRecord, control: Control) -> None:
    """Begin with the first turn, or go on where this loop or one inside paused."""
    if not control.paused:
        r.turn, r.row = 0, BETWEEN
        move_all(r.first, 0)
    elif r.row == BETWEEN:
        control.paused = 0


@jit.inlined
def _run(r: LoopRecord, control: Control, row: int, end: int, nested: bool) -> int:
    """Run the kernels from a row up to another; gives that, or the row of a loop that pauses."""
    while row < end:
        call = call_at(r.steps, row)
        jit.call(call.kernel, call.record)
        if nested and control.paused:
            break
        row += 1
    return row


@jit.inlined
def _holds(r: LoopRecord, turn: int, counted: bool) -> bool:
    """Return whether there is another turn."""
    return turn < r.count if counted else integers_at(r.condition, BYTE)[0] != 0


@jit.inlined
def _taken(r: LoopRecord, control: Control, nested: bool) -> int:
    """Take steps from the budget: as many as until the clock is looked at, one where loops inside
    need some, too. Pauses where none is left.
    """
    steps = min(1 if nested else r.often, control.left)
    control.left -= steps
    if steps == 0:
        control.paused = SPENT
    return steps


@jit.separate
def _is_time(r: LoopRecord, control: Control, nested: bool) -> bool:
    """Look at the clock when it is time to, and pause."""
    r.look -= 1 if nested else r.often
    if r.look > 0:
        return False
    now = nanoseconds(control.clock, control.kind, r.control + TIME)
    fitting = r.often * OFTEN // max(now - r.seen, 1)
    r.often = min(max(fitting, 1), 2 * r.often, MOST)
    r.look, r.seen = r.often, now
    if control.since == 0:
        control.since = now
    if now - control.since > PAUSE:
        control.paused = PAUSED
        return True
    return False


@functools.cache
def _loop(counted: bool, nested: bool) -> jit.Kernel:
    """Make a kernel: of loops over lists, or with a condition, whose copies are the same in each
    turn; of loops without or with others inside.
    """

    @jit.kernel
    def loop(r: LoopRecord) -> None:
        control, steps = _control_at(r.control, 0), 0
        _begin(r, control)
        turn, row = r.turn, r.row
        while True:
            item = turn if counted else 0
            if row < r.asked:
                if row == BETWEEN:
                    move_all(r.shown, item)
                row = _run(r, control, max(row, 0), r.asked, nested)
                if row < r.asked or not _holds(r, turn, counted):
                    break
                if steps == 0:
                    steps = _taken(r, control, nested)
                if steps == 0:
                    break
                steps -= 1
            row = _run(r, control, row, r.calls, nested)
            if row < r.calls:
                break
            move_all(r.writes, item)
            turn, row = turn + 1, BETWEEN
            if steps == 0 and _is_time(r, control, nested):
                break
        control.left += steps
        r.turn, r.row = turn, row
        if not control.paused:
            move_all(r.last, 0)

    return loop
