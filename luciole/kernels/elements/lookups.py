"""One compiled kernel for every function of single integers of 8 or 16 bits: a table of all that
there are, which the reference kernel fills.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from luciole.ir import Array, Op, TensorType
from luciole.kernels import jit
from luciole.kernels.core.memory import Memory, reach
from luciole.kernels.core.registry import Context, NativeStep, accepted, computed, native
from luciole.kernels.elements import strided
from luciole.kernels.jit.record import Shared
from luciole.kernels.jit.vector.byte_functions import look_up_64, looks_up_many
from luciole.kernels.jit.vector.conversions import Kind, integers_at

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
def kernel(given: int, to: int) -> jit.Kernel:
    """Make the kernel from integers of a kind to those of another one."""

    @jit.kernel
    def look_up(r: LookUp) -> None:
        y, x = integers_at(r.y, to), integers_at(r.x, given)
        table, first = integers_at(r.table, to), r.begin
        if given == BYTE and to == BYTE and looks_up_many():
            for _ in range((r.end - first) // MANY):
                look_up_64(r.y + first, r.x + first, r.table)
                first += MANY
        for k in range(first, r.end):
            y[k] = table[x[k]]

    return look_up


def step(op: Op, x: Array, y: Array) -> NativeStep | None:
    """Make the step of a function, with the reference kernel's result for each integer; None where
    the reference refuses some.
    """
    count = 1 << 8 * x.itemsize
    given = np.arange(count).astype(f"u{x.itemsize}").view(x.dtype)
    found = accepted(computed, op, [given])
    if found is None or found[0].itemsize not in KINDS:
        return None
    memory = Memory()
    places = {"y": reach(y, x.size * y.itemsize), "x": reach(x, x.size * x.itemsize)}
    record = LookUp(begin=0, end=x.size, **places, table=memory.keep(found[0], count))
    chosen = kernel(int(KINDS[x.itemsize]), int(KINDS[y.itemsize]))
    return strided.step(chosen, record, x.size, memory)


def register(cls: type[Op], *types: TensorType) -> None:
    """Let an operator of one tensor of integers of 8 or 16 bits run compiled."""

    @native(cls, *types)
    def build(op: Op, context: Context) -> NativeStep | None:
        x = context.operands[0]
        return None if x is None else step(op, x, context.results[0])
