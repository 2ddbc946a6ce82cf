"""Kernels over tables of tiles, one after the other as one step, or shared by threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from luciole.ir import Array
from luciole.kernels import jit
from luciole.kernels.core.allocation import placed
from luciole.kernels.core.call_table import Call, call_at, table_of
from luciole.kernels.core.contract import NativeStep
from luciole.kernels.core.memory import Memory
from luciole.kernels.jit.record import Record


class Tiled(Record):
    """A kernel's work: the address of a table, and how many tiles it has."""

    table: int
    tiles: int


LEAST_CYCLES = 10_000
"""Less work than this is not worth a thread, which must be told and waited for."""

LEAST_WITH_FIRST = 30_000
"""Fewest cycles that threads share where every thread does a part of its own first."""


class Part(NamedTuple):
    """A kernel over a table of tiles, its record, and the bytes of one tile in the table."""

    address: int
    record: Tiled
    row: int


class First(NamedTuple):
    """A kernel that every thread runs whole before its parts, and its record."""

    address: int
    record: Record


class Calls(Record):
    """A table of calls."""

    table: int
    count: int


def in_sequence(
    parts: Sequence[Part], memory: Memory, cycles: float, first: First | None = None
) -> NativeStep:
    """Make a step that does all parts, some ``cycles`` of work; ``memory`` is what they point into.

    ``first`` is a small part that the others read from: every thread does all of it, writing what
    the others write.
    """
    begin = [] if first is None else [first]

    def split(threads: int) -> list[Array]:
        useful = min(threads, int(cycles / (LEAST_CYCLES if first is None else LEAST_WITH_FIRST)))
        shares = [_share(parts, i, useful) for i in range(useful if useful > 1 else 0)]
        return [placed(_record([*begin, *share], memory).words()) for share in shares]

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
