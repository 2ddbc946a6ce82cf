"""A compiled step that runs the steps of one of several graphs, by a number."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from luciole.ir import Array
from luciole.kernels import jit
from luciole.kernels.core.budget import Budget, Control
from luciole.kernels.core.call_table import call_at, table_of
from luciole.kernels.core.contract import NativeStep
from luciole.kernels.core.loops import Part, joined_checks, move_all, moves, whole
from luciole.kernels.core.memory import Memory
from luciole.kernels.jit.record import Record, reader
from luciole.kernels.jit.vector.conversions import Kind, integers_at


class Side(Record):
    """One graph: how many steps it has, addresses of their table of ``Call``, and of ``Moves``
    before and behind them.
    """

    calls: int
    steps: int
    first: int
    last: int


class ChoiceRecord(Record):
    """The address of a number, and of a table of ``count`` sides: the number's own one, the last
    for numbers that none has.

    Written are the ``side`` that is run, and the ``row`` of the step that is to go on once a pause
    is over.
    """

    control: int
    number: int
    sides: int
    count: int
    side: int
    row: int


_side_at, _control_at = reader(Side), reader(Control)


@dataclass(frozen=True)
class Branch:
    """Steps that may be chosen, and the copies before and behind them."""

    steps: Sequence[NativeStep]
    first: Sequence[Part]
    last: Sequence[Part]


def choice(number: Array, branches: Sequence[Branch], budget: Budget) -> NativeStep:
    """Make the step that runs the branch of a number, of which there is one."""
    memory = Memory([budget.control, number])
    sides = [
        Side(
            calls=len(branch.steps),
            steps=table_of(branch.steps, memory),
            first=moves(branch.first, memory),
            last=moves(branch.last, memory),
        )
        for branch in branches
    ]
    record = ChoiceRecord(
        control=whole(budget.control),
        number=whole(number),
        sides=memory.table(sides, Side),
        count=len(sides),
        side=0,
        row=0,
    )
    steps = [step for branch in branches for step in branch.steps]
    nested = any(step.is_paused is not None for step in steps)
    made = memory.step(_choice(number.dtype.kind == "b", nested).address, record)
    is_paused = budget.is_paused if nested else None
    if all(step.check is None or step.remembers for step in steps):
        check = joined_checks(steps)
        return replace(made, is_paused=is_paused, check=check, remembers=check is not None)
    checks = [joined_checks(branch.steps) for branch in branches]

    def check_chosen() -> None:
        check = checks[int(made.record[ChoiceRecord.place("side")])]
        if check is not None:
            check()

    return replace(made, is_paused=is_paused, check=check_chosen)


@functools.cache
def _choice(is_truth: bool, nested: bool) -> jit.Kernel:
    """Make a kernel for a truth value or an INT32, of branches without or with loops inside."""
    kind = int(Kind.UINT8 if is_truth else Kind.INT32)

    @jit.kernel
    def choose(r: ChoiceRecord) -> None:
        control = _control_at(r.control, 0)
        is_new = not nested or not control.paused
        if is_new:
            number = int(integers_at(r.number, kind)[0])
            r.side = number if 0 <= number < r.count else r.count - 1
            r.row = 0
        side = _side_at(r.sides, r.side)
        if is_new:
            move_all(side.first, 0)
        row = r.row
        while row < side.calls:
            call = call_at(side.steps, row)
            jit.call(call.kernel, call.record)
            if nested and control.paused:
                break
            row += 1
        r.row = row
        if row == side.calls:
            move_all(side.last, 0)

    return choose
