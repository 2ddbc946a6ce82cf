"""One compiled kernel for every function of two plain integers, stretched to one shape: no scales
and no zero points, and results that wrap.
"""

from __future__ import annotations

from enum import IntEnum
from functools import cache

from luciole.ir import Op, TensorType
from luciole.ir.dtypes import tensor_type
from luciole.kernels import jit
from luciole.kernels.core.contract import Context, NativeStep
from luciole.kernels.core.memory import Memory
from luciole.kernels.core.registry import native
from luciole.kernels.elements import conversions, strided
from luciole.kernels.jit import Pointer
from luciole.kernels.jit.vector.conversions import Kind, integers_at

KINDS = {**conversions.KINDS, TensorType.INT64: Kind.INT64}


class Integers(IntEnum):
    """A function of two integers."""

    SMALLER = 0
    LARGER = 1
    SUM = 2
    DIFFERENCE = 3
    PRODUCT = 4
    QUOTIENT = 5
    """x / y rounded down; no y is 0 or -1, as the lowest integer by -1 is none."""
    REMAINDER = 6
    """What is left then, with the sign of y."""


SMALLER, LARGER, SUM, DIFFERENCE, PRODUCT, QUOTIENT = (int(f) for f in list(Integers)[:6])


@cache
def kernel(function: int, kind: int, x_step: int, y_step: int) -> jit.Kernel:
    """Make the kernel for integers of a kind.

    The steps are 0 where a single number meets all of a line, else 1.
    """

    @jit.inlined
    def plain_integers(r: strided.Walk, z: int, x: int, y: int) -> None:
        to: Pointer = integers_at(z, kind)
        a, b = integers_at(x, kind), integers_at(y, kind)
        for k in range(r.count):
            to[k] = _computed(function, a[k * x_step], b[k * y_step])

    return strided.by_lines(plain_integers, strided.Walk)


@jit.inlined
def _computed(function: int, p: int, q: int) -> int:
    """Compute a function in 64 bits, of which the result keeps the lower ones."""
    if function == SMALLER:
        return min(p, q)
    if function == LARGER:
        return max(p, q)
    if function == SUM:
        return p + q
    if function == DIFFERENCE:
        return p - q
    if function == PRODUCT:
        return p * q
    if function == QUOTIENT:
        return p // q
    return p % q


def step(function: Integers, context: Context) -> NativeStep:
    """Make the step of a function of both operands, which have the element type of the result."""
    (x, y), z = context.pair, context.results[0]
    memory = Memory()
    walk, cut = strided.walk(z, x, y, memory)
    kind = int(KINDS[tensor_type(z.dtype)])
    compiled = kernel(int(function), kind, *cut.moving)
    return strided.step(compiled, walk, z.size, memory)


def register(cls: type[Op], function: Integers) -> None:
    """Compile an operator as a function of two integers."""

    @native(cls, *KINDS)
    def build(op: Op, context: Context) -> NativeStep:
        return step(function, context)
