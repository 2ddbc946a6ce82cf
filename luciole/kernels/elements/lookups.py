"""One compiled kernel for every function of single integers of 8 or 16 bits: a table of all that
there are, which the reference kernel fills.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np

from luciole.ir import Array, LucioleError, Op, TensorType
from luciole.ir.dtypes import NUMPY
from luciole.kernels import jit
from luciole.kernels.core.contract import Built, Context, NativeStep
from luciole.kernels.core.evaluation import computed
from luciole.kernels.core.memory import Memory, reach
from luciole.kernels.core.reasons import Declined, accepted
from luciole.kernels.core.registry import native
from luciole.kernels.elements import strided
from luciole.kernels.jit.record import Shared
from luciole.kernels.jit.vector.byte_functions import look_up_64, looks_up_many
from luciole.kernels.jit.vector.conversions import Kind, integers_at
from luciole.kernels.portable.integers import tabulate

KINDS = {1: Kind.UINT8, 2: Kind.UINT16}
"""By bytes, the unsigned integers that stand for all others of that size."""

BYTE = int(Kind.UINT8)
MANY = 64
"""Bytes that some machines look up at once."""


class LookUp(Shared):
    """Integers of a result and an operand, and the table of all."""

    y: int
    x: int
    table: int


@cache
def kernel(source: int, to: int) -> jit.Kernel:
    """Make the kernel from integers of a kind to those of another one."""

    @jit.kernel
    def look_up(r: LookUp) -> None:
        y, x = integers_at(r.y, to), integers_at(r.x, source)
        table, first = integers_at(r.table, to), r.begin
        if source == BYTE and to == BYTE and looks_up_many():
            for _ in range((r.end - first) // MANY):
                look_up_64(r.y + first, r.x + first, r.table)
                first += MANY
        for k in range(first, r.end):
            y[k] = table[x[k]]

    return look_up


def step(op: Op, x: Array, y: Array) -> Built:
    """Make the step of a function, with the reference kernel's result for each integer; Declined
    where the reference refuses some.
    """
    count = 1 << 8 * x.itemsize
    every = np.arange(count).astype(f"u{x.itemsize}").view(x.dtype)
    results = accepted(computed, op, [every])
    if isinstance(results, Declined):
        return results
    return of_table(results[0], x, y) if results[0].itemsize in KINDS else None


def of_table(table: Array, x: Array, y: Array) -> NativeStep:
    """Make the step of a function whose results for all integers of x are given, unsigned ones in
    order.
    """
    memory = Memory()
    places = {"y": reach(y, x.size * y.itemsize), "x": reach(x, x.size * x.itemsize)}
    record = LookUp(begin=0, end=x.size, **places, table=memory.keep(table, 1 << 8 * x.itemsize))
    chosen = kernel(int(KINDS[x.itemsize]), int(KINDS[y.itemsize]))
    return strided.step(chosen, record, x.size, memory)


def step_from(
    op: Op, x: Array, y: Array, least: int, refuse: Callable[[int], LucioleError]
) -> Built:
    """Make the step of a function of integers from ``least`` on that never gives the lowest result:
    that marks integers below, of which ``refuse`` makes the error, given how many there were.
    """
    every = np.arange(np.iinfo(x.dtype).min, np.iinfo(x.dtype).max + 1)
    results = accepted(computed, op, [np.maximum(every, least).astype(x.dtype)])
    if isinstance(results, Declined):
        return results
    mark = np.iinfo(y.dtype).min
    if (results[0] == mark).any():
        return None
    marked = np.where(every < least, mark, results[0]).astype(y.dtype)
    made = of_table(np.roll(marked, len(every) // 2), x, y)  # entries from 0 on, then those below

    def check() -> None:
        wrong = int(np.count_nonzero(y == mark))
        if wrong:
            raise refuse(wrong)

    return replace(made, check=check)


_LOOKED_UP: set[tuple[type[Op], TensorType]] = set()


def is_looked_up(op: Op) -> bool:
    """Return whether an operator is a function of single integers of one tensor."""
    return (type(op), op.required(0).dtype) in _LOOKED_UP


def register(cls: type[Op], *types: TensorType) -> None:
    """Compile an operator of one tensor of integers of 8 or 16 bits; bytes have a C form, too."""
    _LOOKED_UP.update((cls, dtype) for dtype in types)
    tabulate(cls, *(dtype for dtype in types if NUMPY[dtype].itemsize == 1))

    @native(cls, *types)
    def build(op: Op, context: Context) -> Built:
        x = context.operands[0]
        return None if x is None else step(op, x, context.results[0])
