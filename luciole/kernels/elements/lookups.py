"""One compiled kernel for every function of single bytes: a table of all 256, which the reference
kernel fills.
"""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, Op, TensorType
from luciole.kernels import jit
from luciole.kernels.core.memory import Memory, reach
from luciole.kernels.core.registry import Context, NativeStep, accepted, computed, native
from luciole.kernels.elements import strided
from luciole.kernels.jit.record import Shared
from luciole.kernels.jit.vector.byte_functions import look_up_64, looks_up_many
from luciole.kernels.jit.vector.conversions import Kind, integers_at

BYTE = int(Kind.UINT8)
MANY = 64
"""Bytes that some machines look up at once."""


class LookUp(Shared):
    """Bytes of a result and an operand, and the table of all 256."""

    y: int
    x: int
    table: int


@jit.kernel
def look_up(r: LookUp) -> None:
    """Look up every byte."""
    y, x = integers_at(r.y, BYTE), integers_at(r.x, BYTE)
    table, first = integers_at(r.table, BYTE), r.begin
    if looks_up_many():
        for _ in range((r.end - first) // MANY):
            look_up_64(r.y + first, r.x + first, r.table)
            first += MANY
    for k in range(first, r.end):
        y[k] = table[x[k]]


def step(op: Op, x: Array, y: Array) -> NativeStep | None:
    """Make the step of a function of bytes, with the reference kernel's result for each byte; None
    where the reference refuses some.
    """
    given = np.arange(256, dtype=np.uint8).view(x.dtype)
    found = accepted(computed, op, [given])
    if found is None or found[0].itemsize != 1:
        return None
    memory = Memory()
    places = {"y": reach(y, x.size), "x": reach(x, x.size)}
    record = LookUp(begin=0, end=x.size, **places, table=memory.keep(found[0], 256))
    return strided.step(look_up, record, x.size, memory)


def register(cls: type[Op], *types: TensorType) -> None:
    """Let an operator of one tensor of bytes run compiled."""

    @native(cls, *types)
    def build(op: Op, context: Context) -> NativeStep | None:
        x = context.operands[0]
        return None if x is None else step(op, x, context.results[0])
