"""Kernels over tables of tiles, one after the other as one step, or shared by threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

from luciole.kernels import jit
from luciole.kernels.core.call_table import Call, call_at, table_of
from luciole.kernels.core.contract import NativeStep, Stage
from luciole.kernels.core.memory import Memory
from luciole.kernels.core.shares import stages
from luciole.kernels.jit.record import Record


class Tiled(Record):
    """A kernel's work: the address of a table, and how many tiles it has."""

    table: int
    tiles: int


LEAST_CYCLES = 1_000
"""Less work than this is not worth a thread: it is told and waited for in some hundreds of cycles.
What one thread alone does between others' work costs more, since it fetches what they wrote.
"""
LEAST_BEHIND_ONE = 30_000
"""The same where one thread alone writes what all read."""


class Part(NamedTuple):
    """A kernel over a table of tiles, its record, and the bytes of one tile in the table."""

    address: int
    record: Tiled
    row: int


class Divisible(Record):
    """Work that may be cut for threads."""

    def cut(self, threads: int) -> list[Self]:
        """Cut it for at most so many threads."""
        raise NotImplementedError


class First(NamedTuple):
    """A kernel that runs before all parts, and its record."""

    address: int
    record: Divisible


class Calls(Record):
    """A table of calls."""

    table: int
    count: int


def in_sequence(
    parts: Sequence[Part], memory: Memory, cycles: float, first: First | None = None
) -> NativeStep:
    """Make a step that does all parts, some ``cycles`` of work; ``memory`` is what they point into.

    ``first`` is what the others read from: threads share it, and meet before the parts.
    """
    begin = [] if first is None else [first]

    def split(threads: int) -> list[Stage]:
        before = [one._replace(record=part) for one in begin for part in one.record.cut(threads)]
        least = LEAST_BEHIND_ONE if len(before) == 1 else LEAST_CYCLES
        useful = min(threads, int(cycles / least))
        shares = [_share(parts, i, useful) for i in range(useful if useful > 1 else 0)]
        return stages(
            [_record([part], memory) for part in before if shares],
            [_record(share, memory) for share in shares],
        )

    record = _record([*begin, *parts], memory)
    return memory.step(_sequence.address, record, split)


def one_by_one(*steps: NativeStep) -> NativeStep:
    """Make a step that does several whole steps, each behind the other, by one thread."""
    memory = Memory()
    record = Calls(table=table_of(steps, memory), count=len(steps))
    return memory.step(_sequence.address, record)


def _record(parts: Sequence[Part | First], memory: Memory) -> Calls:
    calls = [Call(kernel=part.address, record=memory.record(part.record)) for part in parts]
    return Calls(table=memory.table(calls, Call), count=len(calls))


def _share(parts: Sequence[Part], thread: int, threads: int) -> list[Part]:
    """Choose one thread's tiles of each part; of parts with few tiles a thread has all or none."""
    mine = []
    for i, part in enumerate(parts):
        count = part.record.tiles
        begin, end = (count * t // threads for t in (thread, thread + 1))
        if count < threads:
            begin, end = (0, count) if i % threads == thread else (0, 0)
        place = part.record.table + begin * part.row
        record = part.record.replace(table=place, tiles=end - begin)
        mine += [part._replace(record=record)] if end > begin else []
    return mine


@jit.kernel
def _sequence(r: Calls) -> None:
    for i in range(r.count):
        call = call_at(r.table, i)
        jit.call(call.kernel, call.record)
