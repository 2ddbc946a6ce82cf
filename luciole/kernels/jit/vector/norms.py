"""Normalizations in vectors of 16 doubles: moments of floats in memory, and floats written by them.

Lanes beyond the first ``lanes`` of an address count nothing and are not touched.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from llvmlite import ir

from luciole.kernels.jit.emits import Address, Builder, Float32, Int64, Value, emits, types
from luciole.kernels.jit.vector import masked
from luciole.kernels.jit.vector.results import between
from luciole.kernels.jit.vector.vectors import (
    DOUBLES,
    F32,
    F64,
    FLOATS,
    LANES,
    Same,
    Tile,
    Vectors,
    gather,
    load,
    of_llvm,
    splat,
    wide_shuffle,
)

Wide: TypeAlias = Annotated[Vectors, Tile(types.float64, 1)]
"""16 doubles."""

_NOTHING = ir.Constant(FLOATS, None)


@emits
def zeros(builder: Builder) -> Wide:
    """Make a vector of zeros."""
    return gather(builder, [ir.Constant(DOUBLES, None)])


@emits
def loaded(builder: Builder, x: Address, lanes: Int64) -> Wide:
    """Load floats, 0 in the lanes beyond."""
    return gather(builder, [_load(builder, x, masked.lanes_before(builder, lanes, 0))])


@emits
def repeated(builder: Builder, x: Address) -> Wide:
    """Load one float into every lane."""
    number = builder.fpext(load(builder, F32, x), F64)
    return gather(builder, [splat(builder, number)])


@emits
def plus_numbers(builder: Builder, total: Vectors, x: Address, lanes: Int64) -> Same:
    """Add the floats at an address."""
    numbers = _load(builder, x, masked.lanes_before(builder, lanes, 0))
    return gather(builder, [builder.fadd(_only(builder, total), numbers)])


@emits
def plus_squares(builder: Builder, total: Vectors, mean: Vectors, x: Address, lanes: Int64) -> Same:
    """Add the squares of the distances between the floats at an address and their mean."""
    inside = masked.lanes_before(builder, lanes, 0)
    distance = builder.fsub(_load(builder, x, inside), _only(builder, mean))
    distance = builder.select(inside, distance, ir.Constant(DOUBLES, None))
    square = builder.fmul(distance, distance)
    return gather(builder, [builder.fadd(_only(builder, total), square)])


@emits
def summed(builder: Builder, total: Vectors) -> Same:
    """Add up the lanes, and give each the sum."""
    sums, distance = _only(builder, total), LANES // 2
    while distance:
        turned = [(lane + distance) % LANES for lane in range(LANES)]
        sums = builder.fadd(sums, wide_shuffle(builder, sums, sums, turned))
        distance //= 2
    return gather(builder, [sums])


@emits
def mean(builder: Builder, total: Vectors, count: Int64) -> Same:
    """Divide sums by the number of their summands."""
    number = splat(builder, builder.sitofp(count, F64))
    return gather(builder, [builder.fdiv(_only(builder, total), number)])


@emits
def root(builder: Builder, moment: Vectors, epsilon: Float32) -> Same:
    """Compute the square root of a moment and a number beside it."""
    beside = splat(builder, builder.fpext(epsilon, F64))
    moved = builder.fadd(_only(builder, moment), beside)
    return gather(builder, [of_llvm(builder, "llvm.sqrt.v16f64", moved)])


@emits
def write_scaled(
    builder: Builder,
    y: Address,
    x: Address,
    lanes: Int64,
    mean: Vectors,
    root: Vectors,
    scale: Vectors,
    shift: Vectors,
    low: Float32,
    high: Float32,
) -> None:
    """Write scale (x - mean) / root + shift, between two limits, to an address."""
    inside = masked.lanes_before(builder, lanes, 0)
    centred = builder.fsub(_load(builder, x, inside), _only(builder, mean))
    scaled = builder.fmul(_only(builder, scale), centred)
    moved = builder.fadd(builder.fdiv(scaled, _only(builder, root)), _only(builder, shift))
    least, most = splat(builder, low), splat(builder, high)
    result = between(builder, builder.fptrunc(moved, FLOATS), least, most)
    masked.store_first(builder, result, y, 0, inside)


def _load(builder: Builder, x: Value, inside: Value) -> Value:
    return builder.fpext(masked.load_first(builder, x, 0, inside, _NOTHING), DOUBLES)


def _only(builder: Builder, tile: Vectors) -> Value:
    """Return the vector of a tile of one."""
    return builder.extract_value(tile.value, 0)
