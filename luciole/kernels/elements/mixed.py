"""Compiled loops over tensors of different element types, number by number: comparisons, logic and
choices. Plain loops, which LLVM turns into vector code.
"""

from __future__ import annotations

from enum import IntEnum
from functools import cache

import numpy as np

from luciole.ir import Array
from luciole.kernels import jit
from luciole.kernels.core.contract import NativeStep
from luciole.kernels.core.memory import Memory, reach
from luciole.kernels.elements import strided
from luciole.kernels.jit.vector.conversions import Kind, numbers_at

BYTE = int(Kind.UINT8)

KINDS = {
    np.dtype(np.bool_): Kind.UINT8,
    np.dtype(np.int32): Kind.INT32,
    np.dtype(np.int64): Kind.INT64,
    np.dtype(np.float32): Kind.FLOAT32,
}
"""Numbers that are compared."""

SIZES = {1: Kind.UINT8, 2: Kind.INT16, 4: Kind.INT32, 8: Kind.INT64}
"""Integers that stand for elements, by their bytes."""


class Test(IntEnum):
    """Tests of two numbers x and y."""

    LESS = 0
    LESS_EQUAL = 1
    EQUAL = 2
    NOT_EQUAL = 3
    AND = 4
    OR = 5


class ChoiceRecord(strided.Walk):
    """Truth values, where they are true x is taken, and their bytes from line to line."""

    asked: int
    asked_step: int


def compare(test: Test, x: Array | None, y: Array | None, z: Array) -> NativeStep | None:
    """Make the step of z = whether x and y, stretched to one shape, pass a test; None for element
    types that are not compared here.
    """
    if x is None or y is None or x.dtype not in KINDS:
        return None
    memory = Memory()
    walk, cut = strided.walk(z, x, y, memory)
    kernel = _compared(int(test), int(KINDS[x.dtype]), *cut.moving)
    return strided.step(kernel, walk, z.size, memory)


def choose(asked: Array | None, x: Array | None, y: Array | None, z: Array) -> NativeStep | None:
    """Make the step of z = x where ``asked``, else y, all stretched to one shape; None for elements
    of other sizes than 1, 2, 4 or 8 bytes.
    """
    if asked is None or x is None or y is None or z.itemsize not in SIZES:
        return None
    memory, shape, columns = Memory(), z.shape, 5
    tensors = {"z": z, "x": x, "y": y, "asked": asked}
    steps = [strided.stretched(a.shape, shape, a.itemsize) for a in tensors.values()]
    table = strided.collapsed(shape, *steps)
    cut = strided.Cut.of(table)
    lines, z_step, x_step, y_step, asked_step = cut.lines
    record = ChoiceRecord(
        begin=0,
        end=strided.count(cut.around) if z.size else 0,
        count=cut.inner[0],
        lines=lines,
        z_step=z_step,
        x_step=x_step,
        y_step=y_step,
        asked_step=asked_step,
        around=memory.keep(cut.around, len(cut.around), columns),
        axes=len(cut.around),
        **{
            name: reach(array, array.itemsize, *strided.moves(table, number))
            for number, (name, array) in enumerate(tensors.items())
        },
    )
    kernel = _chosen(int(SIZES[z.itemsize]), *cut.moving)
    return strided.step(kernel, record, z.size, memory)


@cache
def _compared(test: int, kind: int, left: int, right: int) -> jit.Kernel:
    """Make the kernel of a test of numbers of a kind; ``left`` and ``right`` are 0 where a single
    number meets all of a line.
    """

    @jit.inlined
    def compared(r: strided.Walk, z_line: int, x_line: int, y_line: int) -> None:
        z, x, y = numbers_at(z_line, BYTE), numbers_at(x_line, kind), numbers_at(y_line, kind)
        for k in range(r.count):
            z[k] = _passes(test, x[k * left], y[k * right])

    return strided.by_lines(compared, strided.Walk)


@jit.inlined
def _passes(test: int, x: float, y: float) -> bool:
    """Ask one test of two numbers."""
    if test == Test.LESS:
        return x < y
    if test == Test.LESS_EQUAL:
        return x <= y
    if test == Test.EQUAL:
        return x == y
    if test == Test.NOT_EQUAL:
        return x != y
    if test == Test.AND:
        return (x != 0) & (y != 0)
    return (x != 0) | (y != 0)


@cache
def _chosen(kind: int, left: int, right: int, moves: int) -> jit.Kernel:
    """Make the kernel of choices between elements of a kind; what is 0 stays where it is along a
    line.
    """

    @jit.kernel
    def chosen(r: ChoiceRecord) -> None:
        for group in range(r.begin, r.end):
            place = r.z + strided.offset(r.around, r.axes, 5, 0, group)
            x_place = r.x + strided.offset(r.around, r.axes, 5, 1, group)
            y_place = r.y + strided.offset(r.around, r.axes, 5, 2, group)
            asked_place = r.asked + strided.offset(r.around, r.axes, 5, 3, group)
            for line in range(r.lines):
                z = numbers_at(place + line * r.z_step, kind)
                x = numbers_at(x_place + line * r.x_step, kind)
                y = numbers_at(y_place + line * r.y_step, kind)
                asked = numbers_at(asked_place + line * r.asked_step, BYTE)
                for k in range(r.count):
                    z[k] = x[k * left] if asked[k * moves] else y[k * right]

    return chosen
