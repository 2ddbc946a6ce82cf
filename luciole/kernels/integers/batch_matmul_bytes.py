"""BATCH_MATMUL of two computed matrices of INT8: sums of products of pairs, in int32.

Rows of the first matrix are kept as int16 steps from its zero point. The second one is read as it
is: what its zero point counts is the same for all sums of a row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from luciole.kernels import jit
from luciole.kernels.batch_matmul import ManyBatches, batch_at, part_of, parts_of
from luciole.kernels.core.contract import NativeStep, Stage
from luciole.kernels.core.memory import Memory
from luciole.kernels.core.shares import stages
from luciole.kernels.fixed_point.scalars import between, multiply
from luciole.kernels.jit import LANES
from luciole.kernels.jit.vector.conversions import Kind, integers_at
from luciole.kernels.jit.vector.row_products import (
    SPAN,
    add_span,
    add_two_rows,
    no_sums,
    store_sums,
    total,
)

MOST_DEPTH = 1 << 15
"""Products of steps of 9 bits whose sum int32 has."""

ROWS = 4
"""Rows of results whose sums are kept in registers at a time."""

BYTE, SHORT, WORD = int(Kind.INT8), int(Kind.INT16), int(Kind.INT32)


class ByteBatches(ManyBatches):
    """A table of batches; rows, depth and columns; how far rows and columns of the first matrix are
    apart, and both zero points; room for its rows, each ``step`` bytes, for the sums of their
    steps, and for sums of 16 columns of four rows; and how sums become results.
    """

    rows: int
    depth: int
    columns: int
    down: int
    across: int
    x_zero: int
    right_zero: int
    lefts: int
    step: int
    totals: int
    sums: int
    multiplier: int
    shift: int
    zero: int
    low: int
    high: int


@dataclass(frozen=True)
class ByteProduct:
    """Rows, depth and columns of products of matrices, and which of the two lie transposed."""

    rows: int
    depth: int
    columns: int
    turned: tuple[bool, bool]

    @property
    def fits(self) -> bool:
        """Whether sums fit into int32, and the bytes read at a time of the second matrix."""
        whole = self.depth >= SPAN if self.turned[1] else self.columns >= LANES
        return whole and self.depth <= MOST_DEPTH

    def step(
        self,
        batches: int,
        count: int,
        zeros: tuple[int, int],
        to: Mapping[str, int],
        memory: Memory,
    ) -> NativeStep:
        """Make the step of ``count`` products, whose matrices' addresses stand at ``batches``;
        ``to`` says how sums become results.
        """
        step = 2 * (self.depth // SPAN + 2) * SPAN
        work = self.rows * self.depth * self.columns

        def room() -> dict[str, int]:
            lefts = memory.scratch(self.rows, step // 4)
            totals, sums = memory.scratch(self.rows), memory.scratch(ROWS, LANES)
            return {"lefts": lefts, "totals": totals, "sums": sums}

        def split(threads: int) -> list[Stage]:
            parts = parts_of(count, work, threads)
            return stages([part_of(record, begin, end, **room()) for begin, end in parts])

        record = ByteBatches(
            batches=batches,
            count=count,
            rows=self.rows,
            depth=self.depth,
            columns=self.columns,
            down=1 if self.turned[0] else self.depth,
            across=self.rows if self.turned[0] else 1,
            x_zero=zeros[0],
            right_zero=zeros[1],
            step=step,
            **room(),
            **to,
        )
        return memory.step(_kernel(int(self.turned[1])).address, record, split)


@jit.separate
def _keep_rows(r: ByteBatches, source: int) -> None:
    """Write the rows of the first matrix as steps, filled up with zeros to whole spans; then one
    more whose last steps are those that no whole span has. And add them up.
    """
    numbers, totals = integers_at(source, BYTE), integers_at(r.totals, WORD)
    whole = r.depth // SPAN * SPAN
    for row in range(r.rows):
        to, total, start = integers_at(r.lefts + row * r.step, SHORT), 0, row * r.down
        for k in range(r.depth):
            step = numbers[start + k * r.across] - r.x_zero
            total += step
            to[k] = step
        for k in range(r.depth, r.step // 2):
            to[k] = 0
        for k in range(whole, r.depth):
            to[k + whole + 2 * SPAN - r.depth] = to[k]
        totals[row] = total


@jit.inlined
def _result(sum: int, r: ByteBatches) -> int:
    """Scale a sum as gemmlowp does: two roundings."""
    return between(multiply(sum, r.multiplier, r.shift) + r.zero, r.low, r.high)


@jit.inlined
def _turned(r: ByteBatches, right: int, y: int) -> None:
    """Multiply rows by rows of the second matrix."""
    results, totals = integers_at(y, BYTE), integers_at(r.totals, WORD)
    whole = r.depth // SPAN
    for row in range(r.rows):
        x, less = r.lefts + row * r.step, r.right_zero * totals[row]
        for column in range(r.columns):
            begin, sums = right + column * r.depth, no_sums(1)
            for k in range(whole):
                sums = add_span(sums, x + 2 * SPAN * k, begin + SPAN * k)
            if whole * SPAN < r.depth:
                last = x + 2 * SPAN * (whole + 1)
                sums = add_span(sums, last, begin + r.depth - SPAN)
            results[row * r.columns + column] = _result(total(sums) - less, r)


@jit.inlined
def _straight(r: ByteBatches, right: int, y: int) -> None:
    """Multiply rows by the second matrix, 16 columns at a time; the last ones may be computed
    twice.
    """
    for first in range(0, r.columns, LANES):
        at = min(first, r.columns - LANES)
        for row in range(0, r.rows, ROWS):
            count, x = min(ROWS, r.rows - row), r.lefts + row * r.step
            if count == ROWS:
                _add_columns(r, ROWS, x, right + at, r.sums)
            else:
                for k in range(count):
                    _add_columns(r, 1, x + k * r.step, right + at, r.sums + 4 * LANES * k)
            _write(r, row, count, y + row * r.columns + at)


@jit.inlined
def _add_columns(r: ByteBatches, rows: int, x: int, right: int, to: int) -> None:
    """Compute the sums of 16 columns of some rows."""
    sums, next_ = no_sums(rows), r.columns
    for k in range(r.depth // 2):
        sums = add_two_rows(sums, x + 4 * k, r.step, right + 2 * k * next_, next_)
    if r.depth % 2:  # the step behind the last one is 0
        sums = add_two_rows(sums, x + 2 * (r.depth - 1), r.step, right + (r.depth - 1) * next_, 0)
    store_sums(sums, to)


@jit.inlined
def _write(r: ByteBatches, row: int, count: int, y: int) -> None:
    totals = integers_at(r.totals, WORD)
    for k in range(count):
        results, sums = integers_at(y + k * r.columns, BYTE), integers_at(r.sums, WORD)
        less = r.right_zero * totals[row + k]
        for i in range(LANES):
            results[i] = _result(sums[LANES * k + i] - less, r)


@cache
def _kernel(turned: int) -> jit.Kernel:
    """Make the kernel, for second matrices that lie transposed where ``turned`` is 1."""

    @jit.kernel
    def byte_batches(r: ByteBatches) -> None:
        for number in range(r.count):
            batch = batch_at(r.batches, number)
            _keep_rows(r, batch.x)
            if turned:
                _turned(r, batch.right, batch.y)
            else:
                _straight(r, batch.right, batch.y)

    return byte_batches
