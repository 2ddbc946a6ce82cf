"""One compiled kernel for every function of two tensors, element by element, stretched to one
shape.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from luciole.ir import Array, Op, TensorType, Value
from luciole.ir.ops.activations import LIMITS
from luciole.ir.ops.elementwise_binary import Arithmetic
from luciole.ir.value import element_count
from luciole.kernels import jit
from luciole.kernels.core.contract import Context, NativeStep
from luciole.kernels.core.memory import Memory
from luciole.kernels.core.registry import native
from luciole.kernels.elements import strided
from luciole.kernels.elements.formulas import name_of
from luciole.kernels.formulas.algebra import BinaryFormula
from luciole.kernels.formulas.elementwise import Unary, define_binary
from luciole.kernels.jit import LANES, floats
from luciole.kernels.jit.vector import elementwise
from luciole.kernels.jit.vector.elementwise import Chosen
from luciole.kernels.portable.calls import CCall, Field, PortableContext, portable
from luciole.kernels.portable.floats import activated, as_limits
from luciole.kernels.portable.images import cut_off
from luciole.kernels.portable.moves import spread_both
from luciole.kernels.portable.printed import loop_name
from luciole.schema.enums import ActivationFunctionType

VECTOR = 4 * LANES
"""Bytes."""


class BinaryRecord(strided.Walk):
    """A walk, and the parameters of the function after."""

    a: float
    b: float


@cache
def kernel(function: int, left: int, right: int, then: int) -> jit.Kernel:
    """Make the kernel of a function of ``Binary`` and one of ``Unary`` after it.

    ``left`` and ``right`` are the bytes that an operand moves on from vector to vector: 0 where a
    single number meets all of a line.
    """

    @jit.kernel
    def binary(r: BinaryRecord) -> None:
        both, after = elementwise.function(function), elementwise.function(then)
        a, b = r.a, r.b  # a result might lie where the record does, for all that LLVM knows
        for group in range(r.begin, r.end):
            z = r.z + strided.offset(r.around, r.axes, 4, 0, group)
            x = r.x + strided.offset(r.around, r.axes, 4, 1, group)
            y = r.y + strided.offset(r.around, r.axes, 4, 2, group)
            for _ in range(r.lines):
                _line(both, after, z, x, y, r.count, left, right, a, b)
                z += r.z_step
                x += r.x_step
                y += r.y_step

    return binary


@jit.inlined
def _line(
    both: Chosen,
    after: Chosen,
    z: int,
    x: int,
    y: int,
    count: int,
    left: int,
    right: int,
    a: float,
    b: float,
) -> None:
    """Compute ``count`` results at z from the operands at x and y."""
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
    function: int,
    x: Array,
    y: Array,
    z: Array,
    activation: ActivationFunctionType = ActivationFunctionType.NONE,
) -> NativeStep | None:
    """Make the step of a function of x and y, z its result; None for an activation that is not
    compiled.
    """
    is_tanh = activation == ActivationFunctionType.TANH
    if activation not in LIMITS and not is_tanh:
        return None
    memory = Memory()
    walk, cut = strided.walk(z, x, y, memory)
    a, b = LIMITS.get(activation, (0.0, 0.0))
    then = Unary.TANH if is_tanh else Unary.CLAMP
    left, right = (VECTOR * move for move in cut.moving)
    compiled = kernel(int(function), left, right, int(then))
    return strided.step(compiled, BinaryRecord(**walk.fields(), a=a, b=b), z.size, memory)


def define(cls: type[Op], formula: BinaryFormula) -> None:
    """Register the formula of an operator of two float tensors, by which it runs compiled and in C:
    ``lambda x, y: (x - y) * (x - y)``. Raises TypeError for an operator with attributes, of which
    the formula would know nothing.
    """
    register(cls, define_binary(name_of(cls), formula))


def register(cls: type[Op], function: int) -> None:
    """Register a function of ``Binary`` for an operator of two float tensors, compiled and in C."""

    @native(cls, TensorType.FLOAT32)
    def build(op: Op, context: Context) -> NativeStep | None:
        x, y = context.pair
        return step(function, x, y, context.results[0])

    @portable(cls, TensorType.FLOAT32)
    def in_c(op: Op, context: PortableContext) -> list[CCall]:
        del context
        operands, before = _spread(op)
        fields: dict[str, Field] = {"count": element_count(op.results[0].dims)}
        return [*before, CCall(loop_name(function), fields, operands, tuple(op.results))]


def register_arithmetic(cls: type[Arithmetic], function: int) -> None:
    """Register a function of ``Binary`` for an operator that an activation may be fused into."""

    @native(cls, TensorType.FLOAT32)
    def build(op: Arithmetic, context: Context) -> NativeStep | None:
        x, y = context.pair
        return step(function, x, y, context.results[0], op.activation)

    @portable(cls, TensorType.FLOAT32)
    def in_c(op: Arithmetic, context: PortableContext) -> list[CCall]:
        del context
        operands, before = _spread(op)
        within, behind = as_limits(op.activation)
        fields = {"count": element_count(op.results[0].dims), **cut_off(within)}

        def computed(z: Value) -> CCall:
            return CCall(loop_name(function), fields, operands, (z,))

        return [*before, *activated(behind, op.results[0], computed)]


def _spread(op: Op) -> tuple[tuple[Value, Value], list[CCall]]:
    """Return the operands, repeated until they have the shape of the result, and what does it."""
    return spread_both(op.required(0), op.required(1), op.results[0])
