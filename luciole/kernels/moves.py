"""One compiled kernel for every operator that only moves elements, of any size."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import numpy as np

from luciole.ir import Array
from luciole.ir.value import shape_text
from luciole.kernels import jit, loops
from luciole.kernels.jit import LANES, Record, longs
from luciole.kernels.jit.moves import copy, scatter, turn
from luciole.kernels.memory import Memory, reach
from luciole.kernels.registry import ExecutionError, NativeStep

JOB_FIELDS = 12
ITEM_SIZES = (1, 2, 4, 8, 16)
RUNS, SCATTERED, TURNED = 0, 1, 2
"""How a job's innermost two loops are done: as runs of bytes, element by element, or transposed."""


def step(pairs: Iterable[tuple[Array, Array]], *owns: Array) -> NativeStep:
    """Copy each second view into its first one; both have the same shape and element type.

    Views are what NumPy's basic indexing and broadcasting give of operands, results or ``owns``.
    Raises ExecutionError for views that do not fit each other.
    """
    memory = Memory(list(owns))
    moved = [(to, source) for to, source in pairs if to.size]
    jobs = [_job(to, source, memory) for to, source in moved]
    table = np.array(jobs, np.int64).reshape(-1, JOB_FIELDS)
    elements = sum(to.size for to, _ in moved)
    record = [memory.keep(table, len(jobs), JOB_FIELDS), 0, len(jobs)]
    return loops.step(_kernel(), record, 1, elements, memory)


def _job(to: Array, source: Array, memory: Memory) -> list[int]:
    """What ``_kernel`` reads of a job."""
    item = to.itemsize
    if to.shape != source.shape or source.itemsize != item or item not in ITEM_SIZES:
        found = f"{shape_text(source.shape)} of {source.dtype}"
        raise ExecutionError(f"{found} cannot move to {shape_text(to.shape)} of {to.dtype}")
    table = loops.collapsed(to.shape, to.strides, source.strides)
    cut = loops.Cut.of(table)
    (count, *moves), kind = cut.inner, SCATTERED
    if moves == [item, item]:
        kind, count = RUNS, count * item
    elif item == 4 and moves[0] == item == cut.lines[2] and min(count, cut.lines[0]) >= LANES:
        kind = TURNED
    places = [reach(t, item, *loops.moves(table, i)) for i, t in enumerate((to, source))]
    outer = [loops.count(cut.around), *cut.described(memory)]
    return [*places, *outer, *cut.lines, count, *moves, kind * 32 + item]


@cache
def _kernel() -> jit.Kernel:
    """Record: jobs, from and to. A job: to, source, how often its outer loops run, these loops,
    then lines and elements (bytes for runs), each with the bytes that both places move on, and kind
    and element size.
    """

    @jit.kernel
    def move(r: Record) -> None:
        for number in range(r[1], r[2]):
            job = longs(r[0] + 8 * JOB_FIELDS * number)
            kind, item = job[11] // 32, job[11] % 32
            for run in range(job[2]):
                to = job[0] + loops.offset(job[3], job[4], 3, 0, run)
                source = job[1] + loops.offset(job[3], job[4], 3, 1, run)
                if kind == RUNS:
                    _runs(to, source, job)
                elif kind == TURNED:
                    _turned(to, source, job)
                else:
                    _scattered(to, source, job, item)

    return move


@jit.merged
def _runs(to: int, source: int, job: Record) -> None:
    for _ in range(job[5]):
        copy(to, source, job[8])
        to += job[6]
        source += job[7]


@jit.inline
def _scattered(to: int, source: int, job: Record, item: int) -> None:
    for _ in range(job[5]):
        scatter(to, source, item, job[8], job[9], job[10])
        to += job[6]
        source += job[7]


@jit.merged
def _turned(to: int, source: int, job: Record) -> None:
    """Blocks of 16 lines and 16 elements; the last ones may overlap those before."""
    lines, count = job[5], job[8]
    for line in range(0, lines, LANES):
        first = min(line, lines - LANES)
        y, x = to + first * job[6], source + first * job[7]
        for element in range(0, count, LANES):
            at = min(element, count - LANES)
            turn(y + at * job[9], job[6], x + at * job[10], job[10])
