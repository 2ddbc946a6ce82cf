"""Kernels over tables of tiles, one after the other as one step, or shared by threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array
from luciole.kernels import jit
from luciole.kernels.allocation import placed
from luciole.kernels.jit import Record
from luciole.kernels.memory import Memory
from luciole.kernels.registry import NativeStep

TABLE, TILES = 5, 6
"""Where the records of such kernels have the table's address and its number of tiles."""

LEAST_CYCLES = 10_000
"""Less work than this is not worth a thread, which must be told and waited for."""

LEAST_WITH_FIRST = 30_000
"""The same where every thread does a part of its own first."""


class Part(NamedTuple):
    """A kernel over a table of tiles, its record, and the bytes of one tile in the table."""

    address: int
    record: Array
    row: int


def in_sequence(
    parts: Sequence[Part], memory: Memory, cycles: float, first: Part | None = None
) -> NativeStep:
    """A step that does all parts, some ``cycles`` of work; ``memory`` is what they point into.

    ``first`` is a small part that the others read from: every thread does all of it, writing what
    the others write.
    """
    begin = [] if first is None else [first]

    def split(threads: int) -> list[Array]:
        useful = min(threads, int(cycles / (LEAST_CYCLES if first is None else LEAST_WITH_FIRST)))
        shares = [_share(parts, i, useful) for i in range(useful if useful > 1 else 0)]
        return [placed(_record([*begin, *share], memory)) for share in shares]

    record = _record([*begin, *parts], memory)
    return memory.step(_sequence.address, record, split)


def _record(parts: Sequence[Part], memory: Memory) -> NDArray[np.int64]:
    rows = [(part.address, memory.record(*part.record)) for part in parts]
    return np.array([len(rows), *(n for row in rows for n in row)], np.int64)


def _share(parts: Sequence[Part], thread: int, threads: int) -> list[Part]:
    """One thread's tiles of each part; of parts with few tiles it has all of some."""
    mine = []
    for i, part in enumerate(parts):
        count = int(part.record[TILES])
        begin, end = (count * t // threads for t in (thread, thread + 1))
        if count < threads:
            begin, end = (0, count) if i % threads == thread else (0, 0)
        record = part.record.copy()
        record[TABLE] += begin * part.row
        record[TILES] = end - begin
        mine += [part._replace(record=record)] if end > begin else []
    return mine


@jit.kernel
def _sequence(r: Record) -> None:
    for i in range(r[0]):
        jit.call(r[1 + 2 * i], r[2 + 2 * i])
