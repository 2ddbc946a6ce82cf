"""One compiled kernel for every operator that only moves elements, of any size."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from luciole.ir import Array
from luciole.ir.value import shape_text
from luciole.kernels import jit
from luciole.kernels.core.contract import NativeStep
from luciole.kernels.core.errors import ExecutionError
from luciole.kernels.core.memory import Memory, reach
from luciole.kernels.elements import strided
from luciole.kernels.jit import LANES
from luciole.kernels.jit.record import Record, Shared, reader
from luciole.kernels.jit.vector.moves import copy, scatter, turn, weave

ITEM_SIZES = (1, 2, 4, 8, 16)
RUNS, SCATTERED, TURNED, WOVEN = 0, 1, 2, 3
"""How a job's innermost two loops are done: as runs of bytes, element by element, transposed, or as
few rows of 4-byte elements that are woven into one.
"""

WEAVES = (2, 3, 4, 8)
"""Rows that are woven: a body for each number."""


class Job(Record):
    """A view that is copied into another one: lines of elements, in ``runs`` of outer loops."""

    to: int
    source: int
    runs: int
    around: int
    axes: int
    lines: int
    to_step: int
    """Bytes from line to line."""
    source_step: int
    count: int
    """Elements of a line, or bytes for RUNS."""
    to_item: int
    """Bytes from element to element."""
    source_item: int
    kind: int
    item: int
    """Bytes of an element."""


class Jobs(Shared):
    """Jobs of a table."""

    table: int


_job_at = reader(Job)


def step(pairs: Iterable[tuple[Array, Array]], *owns: Array) -> NativeStep:
    """Copy each second view into its first one; both have the same shape and element type.

    Views are what NumPy's basic indexing and broadcasting give of operands, results or ``owns``.
    Raises ExecutionError for views that do not fit each other.
    """
    memory = Memory(list(owns))
    moved = [(to, source) for to, source in pairs if to.size]
    jobs = [_job(to, source, memory) for to, source in moved]
    elements = sum(to.size for to, _ in moved)
    record = Jobs(begin=0, end=len(jobs), table=memory.table(jobs, Job))
    return strided.step(_kernel(), record, elements, memory)


def _job(to: Array, source: Array, memory: Memory) -> Job:
    item = to.itemsize
    if to.shape != source.shape or source.itemsize != item or item not in ITEM_SIZES:
        source_text = f"{shape_text(source.shape)} of {source.dtype}"
        raise ExecutionError(f"{source_text} cannot move to {shape_text(to.shape)} of {to.dtype}")
    nest = strided.collapsed(to.shape, to.strides, source.strides)
    cut = strided.Cut.of(nest)
    (count, to_item, source_item), kind = cut.inner, SCATTERED
    lines, to_step, source_step = cut.lines
    if (to_item, source_item) == (item, item):
        kind, count = RUNS, count * item
    elif item == 4 and to_item == item == source_step and min(count, lines) >= LANES:
        kind = TURNED
    elif (to_item, source_step, to_step) == (4, 4, 4 * count) and count in WEAVES:
        kind = WOVEN if lines >= LANES else SCATTERED
    return Job(
        to=reach(to, item, *strided.moves(nest, 0)),
        source=reach(source, item, *strided.moves(nest, 1)),
        runs=strided.count(cut.around),
        around=memory.keep(cut.around, len(cut.around), 3),
        axes=len(cut.around),
        lines=lines,
        to_step=to_step,
        source_step=source_step,
        count=count,
        to_item=to_item,
        source_item=source_item,
        kind=kind,
        item=item,
    )


@cache
def _kernel() -> jit.Kernel:
    """Make the kernel of a table of jobs."""

    @jit.kernel
    def move(r: Jobs) -> None:
        for number in range(r.begin, r.end):
            job = _job_at(r.table, number)
            for run in range(job.runs):
                to = job.to + strided.offset(job.around, job.axes, 3, 0, run)
                source = job.source + strided.offset(job.around, job.axes, 3, 1, run)
                if job.kind == RUNS:
                    _runs(to, source, job)
                elif job.kind == TURNED:
                    _turned(to, source, job)
                elif job.kind == WOVEN:
                    _woven(to, source, job)
                else:
                    _scattered(to, source, job)

    return move


@jit.inlined
def _runs(to: int, source: int, job: Job) -> None:
    for _ in range(job.lines):
        copy(to, source, job.count)
        to += job.to_step
        source += job.source_step


@jit.separate
def _scattered(to: int, source: int, job: Job) -> None:
    for _ in range(job.lines):
        scatter(to, source, job.item, job.count, job.to_item, job.source_item)
        to += job.to_step
        source += job.source_step


@jit.inlined
def _turned(to: int, source: int, job: Job) -> None:
    """Transpose blocks of 16 lines and 16 elements; the last ones may overlap those before."""
    lines, count = job.lines, job.count
    for line in range(0, lines, LANES):
        first = min(line, lines - LANES)
        y, x = to + first * job.to_step, source + first * job.source_step
        for element in range(0, count, LANES):
            at = min(element, count - LANES)
            turn(y + at * job.to_item, job.to_step, x + at * job.source_item, job.source_item)


@jit.inlined
def _woven(to: int, source: int, job: Job) -> None:
    """Weave blocks of 16 lines, whose rows lie apart; the last one may overlap the one before."""
    for line in range(0, job.lines, LANES):
        first = min(line, job.lines - LANES)
        y, x = to + first * job.to_step, source + first * job.source_step
        if job.count == 2:
            weave(y, x, job.source_item, 2)
        elif job.count == 3:
            weave(y, x, job.source_item, 3)
        elif job.count == 4:
            weave(y, x, job.source_item, 4)
        else:
            weave(y, x, job.source_item, 8)
