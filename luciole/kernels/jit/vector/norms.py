"""Normalizations in vectors of 16 doubles: moments of floats in memory, read once, and floats that
are written by a factor and a summand.

Lanes beyond the first ``lanes`` of an address count nothing and are not touched.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from llvmlite import ir

from luciole.kernels.jit.emits import Address, Builder, Float32, Int64, Literal, Value, emits, types
from luciole.kernels.jit.scalars import I64
from luciole.kernels.jit.vector import masked
from luciole.kernels.jit.vector.doubles import FMA
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
    store,
    wide_shuffle,
)

Wide: TypeAlias = Annotated[Vectors, Tile(types.float64, 1)]
"""16 doubles."""

Pair: TypeAlias = Annotated[Vectors, Tile(types.float64, 2)]
"""16 doubles twice: sums of distances from a pivot and of their squares; means and inverse roots of
variances; or factors and summands.
"""

_NOTHING = ir.Constant(FLOATS, None)
_ZEROS = ir.Constant(DOUBLES, None)


@emits
def zeros(builder: Builder) -> Wide:
    """Make a vector of zeros."""
    return gather(builder, [_ZEROS])


@emits
def no_moments(builder: Builder) -> Pair:
    """Begin with nothing."""
    return gather(builder, [_ZEROS, _ZEROS])


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
def plus(builder: Builder, moments: Vectors, pivot: Vectors, x: Address, lanes: Int64) -> Same:
    """Add the distances of the floats at an address from a pivot, and their squares.

    The pivot is one of the numbers: the variance is at least a share of its own distance from the
    mean then, so that the difference of moments keeps its digits in double precision.
    """
    inside = masked.lanes_before(builder, lanes, 0)
    distance = builder.fsub(_load(builder, x, inside), _only(builder, pivot))
    distance = builder.select(inside, distance, _ZEROS)
    total, squares = _both(builder, moments)
    squares = of_llvm(builder, FMA, distance, distance, squares)
    return gather(builder, [builder.fadd(total, distance), squares])


@emits
def keep(builder: Builder, address: Address, pair: Vectors) -> None:
    """Write 16 doubles twice to an address."""
    for place, vector in enumerate(_both(builder, pair)):
        store(builder, vector, address, 8 * LANES * place)


@emits
def kept(builder: Builder, address: Address) -> Pair:
    """Load 16 doubles twice from an address."""
    return gather(builder, [load(builder, DOUBLES, address, 8 * LANES * k) for k in range(2)])


@emits
def joined(builder: Builder, moments: Vectors, others: Vectors) -> Same:
    """Add the moments of other numbers around the same pivot."""
    pairs = zip(_both(builder, moments), _both(builder, others), strict=True)
    return gather(builder, [builder.fadd(*pair) for pair in pairs])


@emits
def by_lanes(
    builder: Builder, moments: Vectors, pivot: Vectors, count: Int64, epsilon: Float32
) -> Same:
    """Compute each lane's mean and inverse root of its variance, a number beside it."""
    total, squares = _both(builder, moments)
    number = splat(builder, builder.sitofp(count, F64))
    beside = splat(builder, builder.fpext(epsilon, F64))
    return gather(
        builder, _standard(builder, total, squares, _only(builder, pivot), number, beside)
    )


@emits
def across(
    builder: Builder, moments: Vectors, pivot: Vectors, count: Int64, epsilon: Float32
) -> Same:
    """Compute the mean and the inverse root of the variance of all lanes together, whose pivot is
    one number.
    """
    total, squares = (_sum(builder, moment) for moment in _both(builder, moments))
    number, beside = builder.sitofp(count, F64), builder.fpext(epsilon, F64)
    first = builder.extract_element(_only(builder, pivot), ir.Constant(I64, 0))
    results = _standard(builder, total, squares, first, number, beside)
    return gather(builder, [splat(builder, result) for result in results])


@emits
def around_zero(builder: Builder, moments: Vectors, count: Int64, epsilon: Float32) -> Wide:
    """Compute the inverse root of the mean square of all lanes together."""
    _, squares = _both(builder, moments)
    number, beside = builder.sitofp(count, F64), builder.fpext(epsilon, F64)
    mean = builder.fdiv(_sum(builder, squares), number)
    return gather(builder, [splat(builder, _inverse_root(builder, mean, beside))])


@emits
def write_product(
    builder: Builder,
    y: Address,
    x: Address,
    lanes: Int64,
    factor: Vectors,
    scale: Address,
    place: Int64,
    each: Literal,
    narrow: Literal,
) -> None:
    """Write factor x to an address, times the floats ``place`` bytes behind another one for
    ``each``, else times the one there. In ``narrow`` products, of a factor that is a float, nothing
    is widened.
    """
    inside = masked.lanes_before(builder, lanes, 0)
    if narrow:
        number = builder.fptrunc(_only(builder, factor), FLOATS)
        product = builder.fmul(masked.load_first(builder, x, 0, inside, _NOTHING), number)
    else:
        product = builder.fmul(_load(builder, x, inside), _only(builder, factor))
        product = builder.fptrunc(product, FLOATS)
    if each:
        scales = masked.load_first(builder, builder.add(scale, place), 0, inside, _NOTHING)
    else:
        scales = splat(builder, load(builder, F32, scale))
    masked.store_first(builder, builder.fmul(product, scales), y, 0, inside)


@emits
def line(builder: Builder, standard: Vectors, scale: Vectors, shift: Vectors) -> Same:
    """Find the factor and the summand of scale (x - mean) / root + shift."""
    mean, inverse = _both(builder, standard)
    factor = builder.fmul(_only(builder, scale), inverse)
    moved = builder.fmul(mean, factor)
    return gather(builder, [factor, builder.fsub(_only(builder, shift), moved)])


@emits
def write(
    builder: Builder,
    y: Address,
    x: Address,
    lanes: Int64,
    line: Vectors,
    low: Float32,
    high: Float32,
    bounded: Literal,
) -> None:
    """Write factor x + summand to an address, between two limits where it is ``bounded``."""
    inside = masked.lanes_before(builder, lanes, 0)
    factor, summand = _both(builder, line)
    result = of_llvm(builder, FMA, _load(builder, x, inside), factor, summand)
    result = builder.fptrunc(result, FLOATS)
    if bounded:
        result = between(builder, result, splat(builder, low), splat(builder, high))
    masked.store_first(builder, result, y, 0, inside)


def _standard(
    builder: Builder, total: Value, squares: Value, pivot: Value, count: Value, epsilon: Value
) -> tuple[Value, Value]:
    """Compute mean and inverse root of the variance, of numbers or of vectors."""
    apart = builder.fdiv(total, count)
    variance = builder.fsub(builder.fdiv(squares, count), builder.fmul(apart, apart))
    nothing = ir.Constant(variance.type, None if variance.type != F64 else 0.0)
    below = builder.fcmp_ordered("<", variance, nothing)  # by rounding: NaN stays NaN
    variance = builder.select(below, nothing, variance)
    return builder.fadd(pivot, apart), _inverse_root(builder, variance, epsilon)


def _inverse_root(builder: Builder, moment: Value, epsilon: Value) -> Value:
    moved = builder.fadd(moment, epsilon)
    is_number = moved.type == F64
    one = ir.Constant(F64, 1.0)
    name = "llvm.sqrt.f64" if is_number else "llvm.sqrt.v16f64"
    root = of_llvm(builder, name, moved)
    return builder.fdiv(one if is_number else splat(builder, one), root)


def _sum(builder: Builder, lanes: Value) -> Value:
    """Add up the lanes of a vector."""
    width = LANES
    while width > 1:
        width //= 2
        halves = [
            wide_shuffle(builder, lanes, lanes, range(first, first + width)) for first in (0, width)
        ]
        lanes = builder.fadd(*halves)
    return builder.extract_element(lanes, ir.Constant(I64, 0))


def _load(builder: Builder, x: Value, inside: Value) -> Value:
    return builder.fpext(masked.load_first(builder, x, 0, inside, _NOTHING), DOUBLES)


def _only(builder: Builder, tile: Vectors) -> Value:
    """Return the vector of a tile of one."""
    return builder.extract_value(tile.value, 0)


def _both(builder: Builder, tile: Vectors) -> tuple[Value, Value]:
    """Return the vectors of a tile of two."""
    return builder.extract_value(tile.value, 0), builder.extract_value(tile.value, 1)
