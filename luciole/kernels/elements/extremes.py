"""One compiled kernel for the larger and the smaller of two integers, stretched to one shape."""

from __future__ import annotations

from functools import cache

from luciole.ir import Op
from luciole.ir.dtypes import tensor_type
from luciole.kernels import jit
from luciole.kernels.core.memory import Memory
from luciole.kernels.core.registry import Context, NativeStep, native
from luciole.kernels.elements import strided
from luciole.kernels.elements.conversions import KINDS
from luciole.kernels.jit import Pointer
from luciole.kernels.jit.vector.conversions import integers_at


@cache
def kernel(larger: bool, kind: int, x_step: int, y_step: int) -> jit.Kernel:
    """Make the kernel for integers of a kind.

    The steps are 0 where a single number meets all of a line, else 1.
    """

    @jit.kernel
    def extremes(r: strided.Walk) -> None:
        for group in range(r.begin, r.end):
            z = r.z + strided.offset(r.around, r.axes, 4, 0, group)
            x = r.x + strided.offset(r.around, r.axes, 4, 1, group)
            y = r.y + strided.offset(r.around, r.axes, 4, 2, group)
            for _ in range(r.lines):
                to: Pointer = integers_at(z, kind)
                a, b = integers_at(x, kind), integers_at(y, kind)
                for k in range(r.count):
                    p, q = a[k * x_step], b[k * y_step]
                    to[k] = max(p, q) if larger else min(p, q)
                z += r.z_step
                x += r.x_step
                y += r.y_step

    return extremes


def register(cls: type[Op], larger: bool) -> None:
    """Let an operator select the larger or the smaller of two integers by compiled code."""

    @native(cls, *KINDS)
    def build(op: Op, context: Context) -> NativeStep:
        (x, y), z = context.operands, context.results[0]
        assert x is not None
        assert y is not None
        memory = Memory()
        walk, cut = strided.walk(z, x, y, memory)
        kind = int(KINDS[tensor_type(z.dtype)])
        found = kernel(larger, kind, *(int(move > 0) for move in cut.inner[2:]))
        return strided.step(found, walk, z.size, memory)
