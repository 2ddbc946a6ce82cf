"""One compiled kernel for functions of two bytes that are not worth one of their own: a table of
all 65536 pairs, which the reference kernel fills.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from luciole.ir import Array, Op, TensorType
from luciole.kernels import jit
from luciole.kernels.core.memory import Memory
from luciole.kernels.core.registry import Context, NativeStep, accepted, computed, native
from luciole.kernels.elements import strided
from luciole.kernels.jit.vector.conversions import Kind, integers_at

BYTE = int(Kind.UINT8)

LEAST_ELEMENTS = 1 << 12
"""Results from which a table is worth the milliseconds that it takes to fill."""


class LookUpPairs(strided.Walk):
    """A walk over bytes, and the table of all pairs."""

    table: int


@cache
def kernel(left: int, right: int) -> jit.Kernel:
    """Make the kernel for operands that move on by ``left`` and ``right`` bytes from result to
    result.
    """

    @jit.kernel
    def look_up_pairs(r: LookUpPairs) -> None:
        table = integers_at(r.table, BYTE)
        for group in range(r.begin, r.end):
            z = r.z + strided.offset(r.around, r.axes, 4, 0, group)
            x = r.x + strided.offset(r.around, r.axes, 4, 1, group)
            y = r.y + strided.offset(r.around, r.axes, 4, 2, group)
            for _ in range(r.lines):
                to, a, b = integers_at(z, BYTE), integers_at(x, BYTE), integers_at(y, BYTE)
                for k in range(r.count):
                    to[k] = table[256 * np.int64(a[k * left]) + np.int64(b[k * right])]
                z += r.z_step
                x += r.x_step
                y += r.y_step

    return look_up_pairs


def table_of(op: Op, dtype: np.dtype[Any]) -> Array | None:
    """Compute the reference kernel's results of all pairs of bytes, None where it refuses one."""
    every = np.arange(256, dtype=np.uint8).view(dtype)
    found = accepted(computed, op, [np.repeat(every, 256), np.tile(every, 256)])
    return None if found is None else np.ascontiguousarray(found[0])


def register(cls: type[Op], *types: TensorType) -> None:
    """Let an operator of two tensors of bytes run compiled."""

    @native(cls, *types)
    def build(op: Op, context: Context) -> NativeStep | None:
        (x, y), z = context.operands, context.results[0]
        assert x is not None
        assert y is not None
        table = table_of(op, x.dtype) if z.size >= LEAST_ELEMENTS else None
        if table is None:
            return None
        memory = Memory()
        walk, cut = strided.walk(z, x, y, 1, memory)
        record = LookUpPairs(**walk.fields(), table=memory.keep(table, 1 << 16))
        return strided.step(kernel(*cut.inner[2:]), record, z.size, memory)
