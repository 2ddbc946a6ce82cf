"""One compiled kernel for every function that is applied element by element to one tensor."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from luciole.ir import Array, Op, TensorType
from luciole.kernels import jit, loops
from luciole.kernels.jit import LANES, Record, elementwise
from luciole.kernels.jit.elementwise import Unary
from luciole.kernels.memory import reach
from luciole.kernels.registry import Context, NativeStep, native


@cache
def kernel(function: int) -> jit.Kernel:
    """The kernel of a function of ``Unary``: result, operand, elements from and to, a and b."""

    @jit.kernel
    def unary(r: Record) -> None:
        chosen = elementwise.function(function)
        a, b = elementwise.number(r[4]), elementwise.number(r[5])
        apply(chosen, r[0] + 4 * r[2], r[1] + 4 * r[2], r[3] - r[2], a, b)

    return unary


@jit.merged
def apply(function: Any, y: int, x: int, count: int, a: float, b: float) -> None:
    """A function with parameters a and b of ``count`` floats at x, to y."""
    for _ in range(count // LANES):
        mapped = elementwise.mapped(function, elementwise.load_vector(x), a, b)
        elementwise.store_vector(mapped, y)
        x += 4 * LANES
        y += 4 * LANES
    rest = count % LANES
    if rest:
        vector = elementwise.load_first(x, rest, np.float32(0))
        elementwise.store_first(elementwise.mapped(function, vector, a, b), y, rest)


def bits(number: float) -> int:
    """A number as a record holds it: a float32 in the lower half."""
    return int(np.float32(number).view(np.uint32))


def step(function: Unary, x: Array | None, y: Array, a: float = 0, b: float = 0) -> NativeStep:
    """A function with parameters a and b, applied to the elements of x."""
    assert x is not None
    places = [reach(t, 4 * y.size) for t in (y, x)]
    record = [*places, 0, y.size, bits(a), bits(b)]
    return loops.step(kernel(int(function)), record, 2, x.size)


def register(cls: type[Op], function: Unary, a: float = 0, b: float = 0) -> None:
    """Let an operator of one float tensor, without attributes, run compiled."""

    @native(cls, TensorType.FLOAT32)
    def build(op: Op, context: Context) -> NativeStep:
        return step(function, context.operands[0], context.results[0], a, b)
