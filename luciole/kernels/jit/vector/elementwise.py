"""Vectors of 16 floats in kernels: load, compute element by element, store.

A vector is a ``Tile`` of one. The functions that kernels apply are those of
``formulas.elementwise``, by their numbers.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from llvmlite import ir
from numba.extending import models, register_model

from luciole.kernels.formulas.elementwise import BINARY, UNARY
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
from luciole.kernels.jit.vector import masked
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
    formula = UNARY[function.kind.number]
    lanes = _lanes(builder, x)
    parameters = (lanes.of(splat(builder, number)) for number in (a, b))
    return gather(builder, [formula(lanes, *parameters).value])


@emits
def combined(builder: Builder, function: Operand[Function], x: Vector, y: Vector) -> Vector:
    """Apply a binary function to two vectors."""
    formula = BINARY[function.kind.number]
    return gather(builder, [formula(_lanes(builder, x), _lanes(builder, y)).value])


@emits
def folded(builder: Builder, function: Operand[Function], x: Vector) -> Float32:
    """Reduce the lanes of a vector to a number by a binary function: neighbours 8 lanes apart, then
    4, 2 and 1.
    """
    formula = BINARY[function.kind.number]
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
