"""One compiled kernel for every function that is applied element by element to one tensor."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeAlias, TypeVar

import numpy as np

from luciole.ir import Array, Op, TensorType
from luciole.kernels import jit
from luciole.kernels.core.contract import Context, NativeStep
from luciole.kernels.core.memory import reach
from luciole.kernels.core.registry import native
from luciole.kernels.elements import strided
from luciole.kernels.elements.formulas import name_of
from luciole.kernels.formulas.algebra import Formula
from luciole.kernels.formulas.elementwise import Applied, define_unary
from luciole.kernels.jit import LANES, Single
from luciole.kernels.jit.record import Shared
from luciole.kernels.jit.vector import elementwise
from luciole.kernels.jit.vector.elementwise import Chosen
from luciole.kernels.portable.calls import CCall, PortableContext, portable
from luciole.kernels.portable.floats import unary_call

O = TypeVar("O", bound=Op)  # noqa: E741  # the operator class
Choose: TypeAlias = Callable[[O], Applied]
"""What chooses the formula of an operator, and its parameters."""


class UnaryRecord(Shared):
    """Elements of a result y and an operand x, and the function's parameters."""

    y: int
    x: int
    a: float
    b: float


@cache
def kernel(function: int) -> jit.Kernel:
    """Make the kernel of a function of ``Unary``."""

    @jit.kernel
    def unary(r: UnaryRecord) -> None:
        chosen = elementwise.function(function)
        apply(chosen, r.y + 4 * r.begin, r.x + 4 * r.begin, r.end - r.begin, r.a, r.b)

    return unary


@jit.inlined
def apply(function: Chosen, y: int, x: int, count: int, a: Single, b: Single) -> None:
    """Apply a function with parameters a and b to ``count`` floats at x; results go to y."""
    for _ in range(count // LANES):
        mapped = elementwise.mapped(function, elementwise.load_vector(x), a, b)
        elementwise.store_vector(mapped, y)
        x += 4 * LANES
        y += 4 * LANES
    rest = count % LANES
    if rest:
        vector = elementwise.load_first(x, rest, np.float32(0))
        elementwise.store_first(elementwise.mapped(function, vector, a, b), y, rest)


def step(formula: Applied, x: Array, y: Array) -> NativeStep:
    """Make the step of a formula that is applied to the elements of x."""
    to, source = (reach(t, 4 * y.size) for t in (y, x))
    record = UnaryRecord(begin=0, end=y.size, y=to, x=source, a=formula.a, b=formula.b)
    return strided.step(kernel(int(formula.function)), record, x.size)


def define(cls: type[Op], formula: Formula) -> None:
    """Register the formula of an operator of one float tensor, by which it runs compiled and in C:
    ``lambda x: x / (1.0 + abs(x))``. Raises TypeError for an operator with attributes, of which the
    formula would know nothing.
    """
    register(cls, define_unary(name_of(cls), formula))


def register(cls: type[Op], function: int, a: float = 0, b: float = 0) -> None:
    """Register a function of ``Unary`` for an operator of one float tensor, compiled and in C."""
    by_attributes(cls)(lambda op: Applied(function, a, b))


def by_attributes(cls: type[O]) -> Callable[[Choose[O]], Choose[O]]:
    """Register a function that chooses the formula of an operator of one float tensor by its
    attributes, compiled and in C.
    """

    def register(choose: Choose[O]) -> Choose[O]:
        @native(cls, TensorType.FLOAT32)
        def build(op: O, context: Context) -> NativeStep:
            return step(choose(op), context.first, context.results[0])

        @portable(cls, TensorType.FLOAT32)
        def in_c(op: O, context: PortableContext) -> list[CCall]:
            del context
            return [unary_call(choose(op), op.required(0), op.results[0])]

        return choose

    return register
