"""Vectors of 16 floats in kernels: load, compute element by element, store.

A vector is a ``Tile`` of one. The functions that kernels apply are numbered, so that a kernel's
factory can hold one in a closure, see ``function``: those that several operators share here, those
of one operator in its kernel file.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Container
from enum import IntEnum
from typing import Annotated, TypeAlias

from llvmlite import ir
from numba.extending import models, register_model

from luciole.kernels.jit.emits import (
    Address,
    Builder,
    Float32,
    Int64,
    Literal,
    Operand,
    Value,
    emits,
    types,
)
from luciole.kernels.jit.vector import functions, masked
from luciole.kernels.jit.vector.lanes import Lanes
from luciole.kernels.jit.vector.vectors import (
    F32,
    FLOATS,
    I32,
    INTS,
    LANES,
    Tile,
    Vectors,
    gather,
    load,
    splat,
    store,
)

Vector: TypeAlias = Annotated[Vectors, Tile(types.float32, 1)]
"""16 floats in a register."""


class Unary(IntEnum):
    """Functions of one vector x and two parameters a and b."""

    ABS = 0
    NEG = 1
    SQUARE = 2
    SQRT = 3
    RSQRT = 4
    EXP = 5
    LOG = 6
    TANH = 7
    LOGISTIC = 8
    ELU = 9
    GELU = 10
    GELU_BY_TANH = 11
    HARD_SWISH = 12
    CLAMP = 13
    SCALE = 14
    SCALED_EXP = 15
    LESS_BOTH = 16


class Binary(IntEnum):
    """Functions of two vectors."""

    ADD = 100
    SUB = 101
    MUL = 102
    DIV = 103
    MAXIMUM = 104
    MINIMUM = 105
    PRELU = 106


_UNARY: dict[int, Callable[[Lanes, Lanes, Lanes], Lanes]] = {
    Unary.ABS: lambda x, a, b: abs(x),
    Unary.NEG: lambda x, a, b: -x,
    Unary.SQUARE: lambda x, a, b: x * x,
    Unary.SQRT: lambda x, a, b: x.sqrt(),
    Unary.RSQRT: lambda x, a, b: x.number(1.0) / x.sqrt(),
    Unary.EXP: lambda x, a, b: functions.exp(x),
    Unary.LOG: lambda x, a, b: functions.log(x),
    Unary.TANH: lambda x, a, b: functions.tanh(x),
    Unary.LOGISTIC: lambda x, a, b: functions.logistic(x),
    Unary.ELU: lambda x, a, b: functions.elu(x),
    Unary.GELU: lambda x, a, b: functions.gelu(x),
    Unary.GELU_BY_TANH: lambda x, a, b: functions.gelu_by_tanh(x),
    Unary.HARD_SWISH: lambda x, a, b: functions.hard_swish(x),
    Unary.CLAMP: lambda x, a, b: x.at_least(a).at_most(b),
    Unary.SCALE: lambda x, a, b: x * a,
    Unary.SCALED_EXP: lambda x, a, b: functions.exp_below((x - a) * b),
    Unary.LESS_BOTH: lambda x, a, b: (x - a) - b,
}

_BINARY: dict[int, Callable[[Lanes, Lanes], Lanes]] = {
    Binary.ADD: lambda x, y: x + y,
    Binary.SUB: lambda x, y: x - y,
    Binary.MUL: lambda x, y: x * y,
    Binary.DIV: lambda x, y: x / y,
    Binary.MAXIMUM: lambda x, y: x.where(x.compared(">", y), y),
    Binary.MINIMUM: lambda x, y: x.where(x.compared("<", y), y),
    Binary.PRELU: lambda x, y: x.where(x.compared(">=", 0.0), x * y),
}


def define_unary(name: str, formula: Callable[[Lanes], Lanes]) -> int:
    """Number a function of one vector that has no parameters, see ``_number``."""
    return define_parametric(name, lambda x, a, b: formula(x))


def define_parametric(name: str, formula: Callable[[Lanes, Lanes, Lanes], Lanes]) -> int:
    """Number a function of one vector and two parameters, see ``_number``."""
    number = _number(name, _UNARY)
    _UNARY[number] = formula
    return number


def define_binary(name: str, formula: Callable[[Lanes, Lanes], Lanes]) -> int:
    """Number a function of two vectors, see ``_number``."""
    number = _number(name, _BINARY)
    _BINARY[number] = formula
    return number


def _number(name: str, taken: Container[int]) -> int:
    """Find a number above those of ``Unary`` and ``Binary`` that a name has in every process, for
    machine code is kept under it. Raises TypeError for a name that has a function.
    """
    number = 0x100 + zlib.crc32(name.encode())
    if number in taken:
        raise TypeError(f"{name} names two functions")
    return number


class Function(types.Type):  # type: ignore[misc]  # numba is not typed
    """The type of a numbered function: the number is part of it, the value holds nothing."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(name=f"Function({number})")


register_model(Function)(models.OpaqueModel)


Chosen: TypeAlias = Annotated[Operand[Function], Function]
"""A function of ``Unary`` or ``Binary``: its type is all that it is."""


@emits
def function(builder: Builder, number: Literal) -> Chosen:
    """Return a function by its number (of ``Unary`` or ``Binary``), a constant when a kernel is
    compiled.
    """
    return ir.Constant(ir.IntType(8).as_pointer(), None)


@emits
def number(builder: Builder, bits: Int64) -> Float32:
    """Return the float32 whose bits are the lower half of a record's number."""
    return builder.bitcast(builder.trunc(bits, I32), F32)


@emits
def spread(builder: Builder, number: Float32) -> Vector:
    """Broadcast a number to every lane."""
    return gather(builder, [splat(builder, number)])


@emits
def load_vector(builder: Builder, address: Address) -> Vector:
    """Load 16 floats from an address on."""
    return gather(builder, [load(builder, FLOATS, address)])


@emits
def store_vector(builder: Builder, vector: Vector, address: Address) -> None:
    """Write 16 floats to an address."""
    store(builder, builder.extract_value(vector, 0), address)


@emits
def load_first(builder: Builder, address: Address, count: Int64, other: Float32) -> Vector:
    """Load ``count`` floats (at most 16) from an address on, reading nothing behind them; the other
    lanes are ``other``.
    """
    lanes = masked.lanes_before(builder, count, 0)
    loaded = masked.load_first(builder, address, 0, lanes, splat(builder, other))
    return gather(builder, [loaded])


@emits
def store_first(builder: Builder, vector: Vector, address: Address, count: Int64) -> None:
    """Write the first ``count`` floats (at most 16) to an address."""
    lanes = masked.lanes_before(builder, count, 0)
    masked.store_first(builder, builder.extract_value(vector, 0), address, 0, lanes)


@emits
def mapped(
    builder: Builder, function: Operand[Function], x: Vector, a: Float32, b: Float32
) -> Vector:
    """Apply a unary function to a vector, with its parameters a and b."""
    formula = _UNARY[function.kind.number]
    lanes = _lanes(builder, x)
    parameters = (lanes.of(splat(builder, number)) for number in (a, b))
    return gather(builder, [formula(lanes, *parameters).value])


@emits
def combined(builder: Builder, function: Operand[Function], x: Vector, y: Vector) -> Vector:
    """Apply a binary function to two vectors."""
    formula = _BINARY[function.kind.number]
    return gather(builder, [formula(_lanes(builder, x), _lanes(builder, y)).value])


@emits
def folded(builder: Builder, function: Operand[Function], x: Vector) -> Float32:
    """Reduce the lanes of a vector to a number by a binary function: neighbours 8 lanes apart, then
    4, 2 and 1.
    """
    formula = _BINARY[function.kind.number]
    lanes, distance = _lanes(builder, x), LANES // 2
    while distance:
        turned = [(lane + distance) % LANES for lane in range(LANES)]
        other = builder.shuffle_vector(lanes.value, lanes.value, ir.Constant(INTS, turned))
        lanes, distance = formula(lanes, lanes.of(other)), distance // 2
    return builder.extract_element(lanes.value, ir.Constant(I32, 0))


@emits
def plus_product(builder: Builder, sum_: Vector, x: Vector, y: Vector) -> Vector:
    """Compute sum + x y, with one rounding where the machine can."""
    summand, factor, other = (_lanes(builder, vector) for vector in (sum_, x, y))
    return gather(builder, [factor.times_plus(other, summand).value])


def _lanes(builder: Builder, vector: Value) -> Lanes:
    return Lanes(builder, builder.extract_value(vector, 0))
