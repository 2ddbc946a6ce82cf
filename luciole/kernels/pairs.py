"""One compiled kernel for every function of two tensors, element by element, stretched to one
shape.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from luciole.ir import Array, Op, TensorType
from luciole.ir.ops.activations import LIMITS
from luciole.kernels import jit, loops
from luciole.kernels.jit import LANES, Record, elementwise, floats
from luciole.kernels.jit.elementwise import Binary, Unary
from luciole.kernels.maps import bits
from luciole.kernels.registry import Context, NativeStep, native
from luciole.schema.enums import ActivationFunctionType

VECTOR = 4 * LANES
"""Bytes."""


@cache
def kernel(function: int, left: int, right: int, then: int) -> jit.Kernel:
    """The kernel of a function of ``Binary`` and one of ``Unary`` after it.

    Record: as ``loops.walk`` has it, then a and b. ``left`` and ``right`` are the bytes that an
    operand moves on from vector to vector: 0 where a single number meets all of a line.
    """

    @jit.kernel
    def binary(r: Record) -> None:
        both, after = elementwise.function(function), elementwise.function(then)
        a, b = elementwise.number(r[12]), elementwise.number(r[13])
        for group in range(r[8], r[9]):
            z = r[0] + loops.offset(r[10], r[11], 4, 0, group)
            x = r[1] + loops.offset(r[10], r[11], 4, 1, group)
            y = r[2] + loops.offset(r[10], r[11], 4, 2, group)
            for _ in range(r[4]):
                _line(both, after, z, x, y, r[3], left, right, a, b)
                z += r[5]
                x += r[6]
                y += r[7]

    return binary


@jit.merged
def _line(
    both: Any, after: Any, z: int, x: int, y: int, count: int, left: int, right: int, a: Any, b: Any
) -> None:
    """``count`` results at z, of what stands at x and y."""
    first, second = elementwise.spread(floats(x)[0]), elementwise.spread(floats(y)[0])
    for _ in range(count // LANES):
        if left:
            first = elementwise.load_vector(x)
        if right:
            second = elementwise.load_vector(y)
        result = elementwise.combined(both, first, second)
        elementwise.store_vector(elementwise.mapped(after, result, a, b), z)
        x += left
        y += right
        z += VECTOR
    rest = count % LANES
    if rest:
        if left:
            first = elementwise.load_first(x, rest, np.float32(0))
        if right:
            second = elementwise.load_first(y, rest, np.float32(0))
        result = elementwise.combined(both, first, second)
        elementwise.store_first(elementwise.mapped(after, result, a, b), z, rest)


def step(
    function: Binary,
    x: Array | None,
    y: Array | None,
    z: Array,
    activation: ActivationFunctionType = ActivationFunctionType.NONE,
) -> NativeStep | None:
    """A function of x and y, z its result; None for an activation that is not compiled."""
    assert x is not None
    assert y is not None
    is_tanh = activation == ActivationFunctionType.TANH
    if activation not in LIMITS and not is_tanh:
        return None
    record, cut = loops.walk(z, x, y, 4)
    limits = LIMITS.get(activation, (0.0, 0.0))
    then = Unary.TANH if is_tanh else Unary.CLAMP
    left, right = (VECTOR if move else 0 for move in cut.inner[2:])
    found = kernel(int(function), left, right, int(then))
    return loops.step(found, [*record, *map(bits, limits)], 8, z.size, (cut.around,))


def register(cls: type[Op], function: Binary) -> None:
    """Let an operator of two float tensors run compiled."""

    @native(cls, TensorType.FLOAT32)
    def build(op: Op, context: Context) -> NativeStep | None:
        x, y = context.operands
        return step(function, x, y, context.results[0])
