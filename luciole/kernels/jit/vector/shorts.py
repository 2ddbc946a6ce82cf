"""Integers of 16 bits in vector registers: sums of their products with others, two for each lane at
a time, and results of layers that are written as such.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from llvmlite import ir
from numba.core import cgutils

from luciole.kernels.jit.emits import Address, Builder, Int64, Literal, Value, emits, types
from luciole.kernels.jit.processor import adds_four_products, has
from luciole.kernels.jit.scalars import I64
from luciole.kernels.jit.vector.bytes import Vector
from luciole.kernels.jit.vector.fixed_point import exactly_rounded, long_products, upper_halves
from luciole.kernels.jit.vector.masked import (
    lanes_before,
    load_first_shorts,
    store_first_shorts,
)
from luciole.kernels.jit.vector.pixels import Places, add_words, repeated
from luciole.kernels.jit.vector.vectors import (
    DOUBLES,
    I16,
    I32,
    INTS,
    LANES,
    LONGS,
    SHORTS,
    IntsLike,
    Longs,
    Same,
    Tile,
    Vectors,
    gather,
    load,
    of_llvm,
    splat,
    store,
    wide_shuffle,
    wide_splat,
)

ONCE_BYTES = 20 * LANES
"""Bytes that ``rescaled_once`` reads for 16 outputs: int64 multipliers and addends of the even ones
and of the odd ones, then int32 shifts of all.
"""

SHIFTED_BYTES = 28 * LANES
"""Bytes that ``rescaled_by_shifts`` reads: multipliers, addends and int64 shifts in the same order,
then the numbers that are taken off.
"""

LONG_BYTES = 24 * LANES
"""Bytes that ``rescaled_longs`` reads for 16 outputs: int64 multipliers, halves of steps, and
shifts.
"""

Zeros: TypeAlias = Annotated[Vectors, lambda pixels, vectors: Tile(types.int32, pixels, vectors)]


@emits
def add_pairs(builder: Builder, tile: Vectors, at: Places, offset: Int64, weights: Address) -> Same:
    """Add to each pixel's row the products of the pixel's own two int16, ``offset`` bytes behind
    its address, with the int16 [vectors, 16, 2] at ``weights``.
    """
    return add_words(builder, tile, at, offset, weights, with_pairs)


def with_pairs(builder: Builder, sums: Value, x: Value, weights: Value) -> Value:
    """Add to sums of int32 the products of two int16 in each lane: ``vpmaddwd``, or ``vpdpwssd``
    where the machine has it.
    """
    if adds_four_products():
        return with_vnni(builder, "vpdpwssd", sums, x, weights)
    if has("avx512bw"):
        return builder.add(sums, _pair_sums(builder, x, weights, "avx512.pmaddw.d.512"))
    if has("avx2"):
        low, high = (
            _pair_sums(builder, _part(builder, x, k), _part(builder, weights, k), "avx2.pmadd.wd")
            for k in (0, 1)
        )
        return builder.add(sums, wide_shuffle(builder, low, high, list(range(LANES))))
    up = ir.Constant(INTS, [16] * LANES)
    low = [builder.ashr(builder.shl(v, up), up) for v in (x, weights)]
    high = [builder.ashr(v, up) for v in (x, weights)]
    return builder.add(builder.add(sums, builder.mul(*low)), builder.mul(*high))


def with_vnni(builder: Builder, name: str, sums: Value, x: Value, weights: Value) -> Value:
    """Add products to sums of int32 by an instruction of VNNI, on 512 bits or on both halves."""
    if has("avx512vnni"):
        return of_llvm(builder, f"llvm.x86.avx512.{name}.512", sums, x, weights)
    halves = ([_part(builder, v, k) for v in (sums, x, weights)] for k in (0, 1))
    low, high = (of_llvm(builder, f"llvm.x86.avx512.{name}.256", *half) for half in halves)
    return wide_shuffle(builder, low, high, list(range(LANES)))


def _part(builder: Builder, value: Value, half: int) -> Value:
    """Take the lower or the upper half of a vector."""
    count = value.type.count // 2
    return wide_shuffle(builder, value, value, list(range(half * count, half * count + count)))


def _pair_sums(builder: Builder, x: Value, weights: Value, name: str) -> Value:
    """Add up the products of neighbouring int16 by an instruction of the machine's."""
    wide = ir.VectorType(I16, 2 * x.type.count)
    kind = ir.FunctionType(x.type, [wide, wide])
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.x86.{name}")
    return builder.call(function, [builder.bitcast(v, wide) for v in (x, weights)])


@emits
def long_rows(builder: Builder, pixels: Literal, vectors: Literal, start: Address) -> Longs:
    """Make a tile [pixels, vectors] whose rows are all the int64 numbers at ``start``."""
    return repeated(builder, LONGS, pixels, vectors, start)


@emits
def no_integers(_: Builder, pixels: Literal, vectors: Literal) -> Zeros:
    """Make a tile [pixels, vectors] of zeros."""
    return ir.Constant(ir.ArrayType(INTS, pixels * vectors), None)


@emits
def with_integers(builder: Builder, tile: Vectors, integers: Vectors) -> Same:
    """Add a tile of int32 to one of int64."""
    sums = []
    for i in range(tile.kind.count):
        addend = builder.sext(builder.extract_value(integers.value, i), LONGS)
        sums.append(builder.add(builder.extract_value(tile.value, i), addend))
    return gather(builder, sums)


@emits
def rescaled_once(builder: Builder, tile: Vectors, constants: Address) -> Same:
    """Scale sums, raised by 2^31 so that they have no sign, to steps of the result, rounding once,
    halves up: the upper half of the product with a multiplier, plus an addend, and that shifted
    down. ``ir.analysis.fixed_point.multiply_wide`` of factors below 1.
    """
    vectors = tile.kind.shape[1]
    results = []
    for i in range(tile.kind.count):
        offset = ONCE_BYTES * (i % vectors)
        upper = upper_halves(builder, builder.extract_value(tile.value, i), constants, offset)
        shift = load(builder, INTS, constants, offset + 16 * LANES)
        results.append(builder.ashr(upper, shift))
    return gather(builder, results)


@emits
def rescaled_by_shifts(builder: Builder, tile: Vectors, constants: Address) -> Same:
    """Scale sums in the same way by any factors: products, in which a number without a sign is
    2^63 larger, are shifted down each by its own bits, and what the 2^63 became is taken off.
    """
    vectors = tile.kind.shape[1]
    results = []
    for i in range(tile.kind.count):
        offset = SHIFTED_BYTES * (i % vectors)
        products = long_products(builder, builder.extract_value(tile.value, i), constants, offset)
        even, odd = (
            builder.lshr(product, load(builder, product.type, constants, offset + 4 * LANES * k))
            for k, product in enumerate(products, 4)
        )
        a, b = (builder.bitcast(v, INTS) for v in (even, odd))
        order = [2 * (lane // 2) + LANES * (lane % 2) for lane in range(LANES)]
        excess = load(builder, INTS, constants, offset + 24 * LANES)
        results.append(builder.sub(wide_shuffle(builder, a, b, order), excess))
    return gather(builder, results)


@emits
def rescaled_longs(builder: Builder, tile: Vectors, constants: Address) -> IntsLike:
    """Scale sums of int64 to steps of the result: ``ir.analysis.fixed_point.multiply_wide``."""
    vectors = tile.kind.shape[1]
    results = []
    for i in range(tile.kind.count):
        start = LONG_BYTES * (i % vectors)
        multiplier, half, shift = (
            load(builder, LONGS, constants, start + 8 * LANES * n) for n in range(3)
        )
        product = builder.mul(builder.extract_value(tile.value, i), multiplier)
        steps = builder.ashr(builder.add(product, half), shift)
        results.append(builder.trunc(steps, INTS))
    return gather(builder, results)


@emits
def longs_scaled_exactly(builder: Builder, tile: Vectors, factors: Address) -> IntsLike:
    """Multiply sums of int64 by factors in double precision and round to integers, halves away from
    zero.
    """
    return exactly_rounded(builder, tile, factors)


@emits
def write_shorts(
    builder: Builder, tile: Vectors, low: Int64, high: Int64, at: Places, count: Int64
) -> None:
    """Write each pixel's row as int16, cut off at two limits, to its address: its first ``count``
    ones where there are more.
    """
    pixels, vectors = tile.kind.shape
    limits = [wide_splat(builder, builder.trunc(n, I16), LANES) for n in (low, high)]
    results = [
        _cut(
            builder,
            builder.trunc(saturated(builder, builder.extract_value(tile.value, i)), SHORTS),
            *limits,
        )
        for i in range(tile.kind.count)
    ]
    starts = [builder.extract_value(at.value, p) for p in range(pixels)]
    _write(
        builder, results, [(start, v) for start in starts for v in range(vectors)], count, vectors
    )


def saturated(builder: Builder, x: Value) -> Value:
    """Cut int32 off at the limits of int16, as ``vpackssdw`` does on the way to these."""
    low, high = (ir.Constant(x.type, [n] * x.type.count) for n in (-(2**15), 2**15 - 1))
    x = of_llvm(builder, f"llvm.smin.v{x.type.count}i32", x, high)
    return of_llvm(builder, f"llvm.smax.v{x.type.count}i32", x, low)


def _cut(builder: Builder, x: Value, low: Value, high: Value) -> Value:
    """Cut int16 off at two limits."""
    x = of_llvm(builder, f"llvm.smax.v{x.type.count}i16", x, low)
    return of_llvm(builder, f"llvm.smin.v{x.type.count}i16", x, high)


def _write(
    builder: Builder,
    results: list[Value],
    places: list[tuple[Value, int]],
    count: Value,
    vectors: int,
) -> None:
    """Write vectors of 16 int16 to addresses and numbers of vectors behind them."""
    full = builder.icmp_signed(">=", count, ir.Constant(count.type, LANES * vectors))
    with builder.if_else(full) as (everything, rest):
        with everything:
            for value, (start, v) in zip(results, places, strict=True):
                store(builder, value, start, 2 * LANES * v, align=1)
        with rest:
            for value, (start, v) in zip(results, places, strict=True):
                there = builder.add(start, ir.Constant(start.type, 2 * LANES * v))
                store_first_shorts(builder, value, there, count, LANES * v)


PIECE = LANES // 2
"""Channels of a quarter of a row of 64 bytes."""

ROW = ir.VectorType(I16, 2 * LANES)


@emits
def write_short_channels(
    builder: Builder, tile: Vectors, low: Int64, high: Int64, at: Places, count: Int64
) -> None:
    """Write rows of 32 int16, whose two vectors are from ``dots.add_taps``, cut off at two limits:
    whole where there is one address for each, else in pieces of 8, the first ``count`` of each.
    """
    limits = [wide_splat(builder, builder.trunc(n, I16), 2 * LANES) for n in (low, high)]
    rows = []
    for first in range(0, tile.kind.count, 2):
        a, b = (saturated(builder, builder.extract_value(tile.value, first + v)) for v in (0, 1))
        narrow = builder.trunc(wide_shuffle(builder, a, b, _IN_ORDER), ROW)
        rows.append(_cut(builder, narrow, *limits))
    for i in range(at.kind.count):
        address, row = builder.extract_value(at.value, i), rows[i * len(rows) // at.kind.count]
        if at.kind.count == len(rows):
            store(builder, row, address, align=1)
        else:
            _write_piece(builder, row, i % 4, address, count)


_IN_ORDER = [LANES * v + 4 * q + i for q in range(4) for v in (0, 1) for i in range(4)]
"""Where the channels of a row stand in its two vectors."""


def _write_piece(builder: Builder, row: Value, number: int, address: Value, count: Value) -> None:
    """Write a quarter of a row, or its first ``count`` int16."""
    some = [PIECE * number + lane % PIECE for lane in range(LANES)]
    piece = wide_shuffle(builder, row, row, some)
    whole = builder.icmp_signed(">=", count, ir.Constant(I64, PIECE))
    with builder.if_else(whole) as (everything, rest):
        with everything:
            lower = wide_shuffle(builder, piece, piece, list(range(PIECE)))
            store(builder, lower, address, align=1)
        with rest:
            store_first_shorts(builder, piece, address, count, 0)


@emits
def load_shorts(builder: Builder, address: Address, count: Int64) -> Vector:
    """Load ``count`` int16 (at most 16) from an address on as int32, reading nothing behind them;
    the other lanes are 0.
    """
    loaded = load_first_shorts(builder, address, lanes_before(builder, count, 0))
    return gather(builder, [builder.sext(loaded, INTS)])


@emits
def load_all_shorts(builder: Builder, address: Address) -> Vector:
    """Load 16 int16 from an address on as int32."""
    return gather(builder, [builder.sext(load(builder, SHORTS, address, align=1), INTS)])


@emits
def raised(builder: Builder, x: Vector, left: Int64, plus: Int64) -> Vector:
    """Shift every lane up, and add a number to it; lanes wrap around."""
    left, plus = (splat(builder, builder.trunc(n, I32)) for n in (left, plus))
    value = builder.shl(builder.extract_value(x, 0), left)
    return gather(builder, [builder.add(value, plus)])


@emits
def difference(builder: Builder, x: Vector, y: Vector) -> Vector:
    """Subtract lane by lane."""
    x, y = (builder.extract_value(v, 0) for v in (x, y))
    return gather(builder, [builder.sub(x, y)])


@emits
def shares(builder: Builder, x: Vector, count: Int64) -> Vector:
    """Compute x / count, halves rounded away from zero, by way of double precision, which tells
    quotients of 32 bits from the next integers.
    """
    x, divisor = builder.extract_value(x, 0), builder.trunc(count, I32)
    half = splat(builder, builder.lshr(divisor, ir.Constant(I32, 1)))
    negative = builder.icmp_signed("<", x, ir.Constant(INTS, [0] * LANES))
    size = builder.add(builder.select(negative, builder.neg(x), x), half)
    below = builder.sitofp(splat(builder, divisor), DOUBLES)
    whole = builder.fptosi(builder.fdiv(builder.sitofp(size, DOUBLES), below), INTS)
    return gather(builder, [builder.select(negative, builder.neg(whole), whole)])


@emits
def store_shorts(
    builder: Builder, x: Vector, low: Int64, high: Int64, address: Address, count: Int64
) -> None:
    """Write the first ``count`` lanes (at most 16), cut off at two limits, as int16."""
    store_first_shorts(builder, _narrowed(builder, x, low, high), address, count)


@emits
def store_all_shorts(
    builder: Builder, x: Vector, low: Int64, high: Int64, address: Address
) -> None:
    """Write 16 lanes, cut off at two limits, as int16."""
    store(builder, _narrowed(builder, x, low, high), address, align=1)


def _narrowed(builder: Builder, tile: Value, low: Value, high: Value) -> Value:
    """Narrow a vector of int32, cut off at two limits, to int16."""
    limits = [splat(builder, builder.trunc(n, I16)) for n in (low, high)]
    value = saturated(builder, builder.extract_value(tile, 0))
    return _cut(builder, builder.trunc(value, SHORTS), *limits)
