"""Nested loops over several tensors at once, with as few axes as their layout allows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array
from luciole.kernels import jit
from luciole.kernels.core.contract import NativeStep
from luciole.kernels.core.memory import Memory, Moves, reach, turns
from luciole.kernels.core.shares import shares
from luciole.kernels.jit import longs
from luciole.kernels.jit.record import Shared

LEAST_SHARE = 1 << 10
"""Elements below which a thread of its own does not pay: a fraction of a microsecond of work."""

Table = NDArray[np.int64]
"""Loops from outside in, a row for each: extent, then how many bytes each tensor moves on."""

EXTENT = 0
"""The column of extents."""


def collapsed(shape: Sequence[int], *steps: Sequence[int]) -> Table:
    """Merge the loops over ``shape`` in which each tensor moves by its ``steps``, in bytes.

    Axes of extent 1 are left out unless there is no other, and two neighbours are one where every
    tensor goes on evenly.
    """
    rows: list[list[int]] = []
    for extent, *moves in zip(shape, *steps, strict=True):
        if extent == 1:
            continue
        if rows and all(
            outer == inner * extent for outer, inner in zip(rows[-1][1:], moves, strict=True)
        ):
            rows[-1] = [rows[-1][0] * extent, *moves]
        else:
            rows.append([extent, *moves])
    return np.array(rows or [[1] + [0] * len(steps)], np.int64)


@dataclass(frozen=True)
class Cut:
    """A table by how a kernel walks it: its last loop, the one around that, and all others."""

    around: Table
    lines: tuple[int, ...]
    inner: tuple[int, ...]

    @classmethod
    def of(cls, table: Table) -> Cut:
        """Split a table into its innermost loop, the lines around and the rest; a loop that is not
        there runs once.
        """
        inner, line, around = table[-1], np.array([1] + [0] * (table.shape[1] - 1)), table[:-1]
        if len(around):
            line, around = around[-1], around[:-1]
        return cls(around, tuple(line.tolist()), tuple(inner.tolist()))

    @property
    def moving(self) -> tuple[int, ...]:
        """For each operand 1, or 0 where one element meets all of the innermost loop."""
        return tuple(int(step > 0) for step in self.inner[2:])


def count(table: Table) -> int:
    """Count how often the innermost body runs."""
    return int(table[:, 0].prod())


def moves(table: Table, tensor: int) -> list[Moves]:
    """Return the moves of a tensor's address in each loop of a table."""
    return [turns(row[0], row[1 + tensor]) for row in table.tolist()]


def contiguous(shape: Sequence[int], item: int = 4) -> tuple[int, ...]:
    """Return the steps of a tensor in C order."""
    steps = [item]
    for extent in reversed(shape[1:]):
        steps.append(steps[-1] * extent)
    return tuple(reversed(steps))[-len(shape) :] if shape else ()


def stretched(shape: Sequence[int], to: Sequence[int], item: int = 4) -> tuple[int, ...]:
    """Return the steps of a C-ordered tensor that is broadcast to another shape: 0 along repeated
    axes.
    """
    steps = zip(shape, contiguous(shape, item), strict=True)
    moves = tuple(0 if extent == 1 else step for extent, step in steps)
    return (0,) * (len(to) - len(shape)) + moves


class Walk(Shared):
    """A walk over two tensors x and y that are broadcast to a result z, in groups of lines from
    ``begin`` to before ``end``.
    """

    z: int
    x: int
    y: int
    count: int
    """Elements of a line."""
    lines: int
    z_step: int
    """Bytes from line to line."""
    x_step: int
    y_step: int
    around: int
    """The loops over groups, as ``offset`` takes them, and their number."""
    axes: int


def walk(z: Array, x: Array, y: Array, memory: Memory) -> tuple[Walk, Cut]:
    """Plan how a kernel goes over x and y, whose elements may be of other sizes than z's: its
    record, and the loops that it is made of.
    """
    steps = [stretched(t.shape, z.shape, t.itemsize) for t in (x, y)]
    table = collapsed(z.shape, contiguous(z.shape, z.itemsize), *steps)
    cut = Cut.of(table)
    places = [reach(t, t.itemsize, *moves(table, i)) for i, t in enumerate((z, x, y))]
    lines, z_step, x_step, y_step = cut.lines
    record = Walk(
        begin=0,
        end=count(cut.around) if z.size else 0,
        z=places[0],
        x=places[1],
        y=places[2],
        count=cut.inner[0],
        lines=lines,
        z_step=z_step,
        x_step=x_step,
        y_step=y_step,
        around=memory.keep(cut.around, len(cut.around), 4),
        axes=len(cut.around),
    )
    return record, cut


def step(
    kernel: jit.Kernel, record: Shared, elements: int, memory: Memory | None = None
) -> NativeStep:
    """Make the step of a kernel whose work threads share where each gets enough of the elements."""
    least = -(-LEAST_SHARE * (record.end - record.begin) // max(elements, 1))
    memory = Memory() if memory is None else memory
    return memory.step(kernel.address, record, partial(shares, record, least=least))


@jit.inlined
def offset(table: int, axes: int, columns: int, tensor: int, index: int) -> int:
    """Compute how far a tensor has moved in the ``index``-th run of a table's loops, which has an
    extent and a step of each tensor in its ``columns``.
    """
    total = 0
    for axis in range(axes - 1, 0, -1):
        row = longs(table + 8 * columns * axis)
        total += index % row[EXTENT] * row[1 + tensor]
        index //= row[EXTENT]
    if axes:  # what is left counts the outermost loop: a division is dear
        total += index * longs(table)[1 + tensor]
    return total


W = TypeVar("W", bound=Walk)


def by_lines(line: Callable[[W, int, int, int], None], record: type[W]) -> jit.Kernel:
    """Make the kernel of a walk over two tensors that computes one line after the other: ``line``,
    a helper, is given the record, and the addresses of a line of z, x and y.
    """

    def lines(r: W) -> None:
        for group in range(r.begin, r.end):
            z = r.z + offset(r.around, r.axes, 4, 0, group)
            x = r.x + offset(r.around, r.axes, 4, 1, group)
            y = r.y + offset(r.around, r.axes, 4, 2, group)
            for _ in range(r.lines):
                line(r, z, x, y)
                z += r.z_step
                x += r.x_step
                y += r.y_step

    lines.__annotations__["r"] = record  # its fields are known when the kernel is compiled
    return jit.kernel(lines)
