"""Keep compiled steps in a table that kernels walk."""

from __future__ import annotations

from collections.abc import Sequence

from luciole.kernels.core.contract import NativeStep
from luciole.kernels.core.memory import Memory, reach
from luciole.kernels.jit.record import Record, reader


class Call(Record):
    """A kernel and its record."""

    kernel: int
    record: int


call_at = reader(Call)


def table_of(steps: Sequence[NativeStep], memory: Memory) -> int:
    """Keep steps and all that they own, and return the address of their table of ``Call``."""
    memory.arrays += [array for step in steps for array in (step.record, *step.owns)]
    calls = [
        Call(kernel=step.address, record=reach(step.record, step.record.nbytes)) for step in steps
    ]
    return memory.table(calls, Call)
