"""Floats in vector registers to bit planes: 32 inputs at once find their levels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypeAlias

from llvmlite import ir
from numba.core import cgutils

from luciole.kernels.jit.emits import (
    Address,
    Builder,
    Form,
    Int64,
    Literal,
    Single,
    Truth,
    UInt32,
    Value,
    emits,
    types,
)
from luciole.kernels.jit.processor import has
from luciole.kernels.jit.scalars import I64
from luciole.kernels.jit.vector.bit_lookups import store_word
from luciole.kernels.jit.vector.masked import TRUTHS, lanes_before, load_first, store_first_bytes
from luciole.kernels.jit.vector.vectors import (
    BYTES,
    F32,
    FLOATS,
    FMA,
    I32,
    INTS,
    LANES,
    Floats,
    Ints,
    Tile,
    Vectors,
    gather,
    load,
    of_llvm,
    splat,
    store,
)

Word: TypeAlias = Annotated[Vectors, Tile(types.int32, 2)]
"""32 integers."""

WordFloats: TypeAlias = Annotated[Vectors, Tile(types.float32, 2)]
"""32 floats."""

_POINTERS = ir.VectorType(ir.IntType(8).as_pointer(), LANES)
_ADDRESSES = ir.VectorType(I64, LANES)


@emits
def word_floats(builder: Builder, address: Address) -> WordFloats:
    """Load the 32 floats at an address as a tile."""
    return gather(builder, [load(builder, FLOATS, address, 4 * LANES * h) for h in range(2)])


@emits
def first_floats(builder: Builder, address: Address, count: Int64) -> WordFloats:
    """Load the first ``count`` of 32 floats at an address, NaN for the others, which are not
    touched.
    """
    nan = ir.Constant(FLOATS, [float("nan")] * LANES)
    halves = [
        load_first(builder, address, 4 * LANES * h, lanes_before(builder, count, LANES * h), nan)
        for h in range(2)
    ]
    return gather(builder, halves)


def _splats(builder: Builder, form: Form, address: Value, count: int) -> Value:
    """Load numbers of an LLVM type, each into all lanes of a vector of its own."""
    numbers = [load(builder, form, address, 4 * i) for i in range(count)]
    if not numbers:
        return ir.Constant(ir.ArrayType(ir.VectorType(form, LANES), 0), ir.Undefined)
    return gather(builder, [splat(builder, number) for number in numbers])


@emits
def float_splats(builder: Builder, address: Address, count: Literal) -> Floats:
    """Load ``count`` floats (known when a kernel is compiled) from an address, each into all lanes
    of a vector of its own.
    """
    return _splats(builder, F32, address, count)


@emits
def word_splats(builder: Builder, address: Address, count: Literal) -> Ints:
    """Load words as ``float_splats`` does floats."""
    return _splats(builder, I32, address, count)


@emits
def is_empty(builder: Builder, tile: Vectors) -> Truth:
    """Return whether a tile has no vectors, known when a kernel is compiled."""
    return ir.Constant(ir.IntType(1), tile.kind.count == 0)


@emits
def encode_word(
    builder: Builder,
    x: WordFloats,
    thresholds: Vectors,
    codes: Vectors,
    mask: Int64,
    to: Address,
) -> None:
    """Write the code numbers of 32 floats as one word per bit, cut off by ``mask``, to an address,
    as ``xor_popcount`` meets them.

    ``thresholds`` is a tile of 2^K - 1 rising numbers, and the tile ``codes`` holds the code of
    each level; where that is empty the levels' own numbers are the codes. The search is binary: the
    next threshold is selected by the last comparison. What the comparisons give are the bits of the
    level's number: no number is ever made of them.
    """
    limits = [builder.extract_value(thresholds.value, i) for i in range(thresholds.kind.count)]
    numbers = [builder.extract_value(codes.value, i) for i in range(codes.kind.count)]
    halves = [
        _code_bits(builder, builder.extract_value(x, half), limits, numbers) for half in range(2)
    ]
    for bit, pair in enumerate(zip(*halves, strict=True)):
        bits = builder.and_(word(builder, pair), builder.trunc(mask, I32))
        store_word(builder, bits, to, bit)


def _code_bits(
    builder: Builder, x: Value, limits: Sequence[Value], codes: Sequence[Value]
) -> list[Value]:
    """Find the bits of the code of each ``x``, lowest first."""
    bits: list[Value] = []
    left = list(limits)
    while left:
        middle = len(left) // 2
        above = builder.fcmp_ordered(">", x, left[middle])
        left = _selected(builder, above, left[:middle], left[middle + 1 :])
        half = len(codes) // 2
        codes = _selected(builder, above, codes[:half], codes[half:])
        bits.append(above)
    if not codes:
        return bits[::-1]
    return [_bit(builder, codes[0], ir.Constant(I32, i)) for i in range(len(bits))]


PERMUTES = has("avx512f")
"""Whether the machine looks numbers up in a vector of 16 floats: ``vpermps``."""

Pair: TypeAlias = Annotated[tuple[Single, Single], types.UniTuple(types.float32, 2)]
"""Two floats."""

Limits: TypeAlias = Annotated[
    Vectors, lambda _, count, *rest: Tile(types.float32, 1 if PERMUTES else count)
]
"""Thresholds between evenly spaced levels."""


@emits
def level_limits(builder: Builder, address: Address, count: Literal) -> Limits:
    """Load ``count`` thresholds, known when a kernel is compiled, from room for 16."""
    if not PERMUTES:
        return _splats(builder, F32, address, count)
    return gather(builder, [load(builder, FLOATS, address)])


@emits
def write_levels(
    builder: Builder, x: Address, limits: Vectors, grid: Pair, count: Literal, to: Address
) -> None:
    """Write twice the numbers of the levels of 16 floats as bytes: of ``count`` thresholds x lies
    near number x * grid[0] + grid[1], whether above or not is compared. NaN is on the lowest level.
    """
    numbers = load(builder, FLOATS, x)
    store(builder, _level_bytes(builder, numbers, limits, grid, count), to, align=1)


@emits
def write_some_levels(
    builder: Builder,
    x: Address,
    limits: Vectors,
    grid: Pair,
    count: Literal,
    to: Address,
    some: Int64,
) -> None:
    """Write as ``write_levels`` does for the first of 16 floats; nothing else is touched."""
    inside = lanes_before(builder, some, 0)
    numbers = load_first(builder, x, 0, inside, ir.Constant(FLOATS, None))
    store_first_bytes(builder, _level_bytes(builder, numbers, limits, grid, count), to, some)


def _level_bytes(builder: Builder, x: Value, limits: Vectors, grid: Value, count: int) -> Value:
    """Compute twice the number of each float's level."""
    nothing = ir.Constant(INTS, None)
    if PERMUTES:
        nearest = _nearest_limit(builder, x, grid, count - 1)
        limit = _permuted(builder, builder.extract_value(limits.value, 0), nearest)
        above = builder.fcmp_ordered(">", x, limit)
        number = builder.sub(nearest, builder.sext(above, INTS))
        return builder.trunc(builder.add(number, number), BYTES)
    between = [builder.extract_value(limits.value, i) for i in range(count)]
    number = nothing
    for bit, above in enumerate(_code_bits(builder, x, between, [])):
        worth = ir.Constant(INTS, [2 << bit] * LANES)
        number = builder.or_(number, builder.select(above, worth, nothing))
    return builder.trunc(number, BYTES)


def _nearest_limit(builder: Builder, x: Value, grid: Value, last: int) -> Value:
    """Find the number of the threshold nearest to each float, or of one as near but for
    rounding.
    """
    inverse, first = (splat(builder, builder.extract_value(grid, i)) for i in (0, 1))
    place = of_llvm(builder, FMA, x, inverse, first)
    low, high = ir.Constant(FLOATS, [0.0] * LANES), ir.Constant(FLOATS, [float(last)] * LANES)
    place = builder.select(builder.fcmp_ordered(">", place, low), place, low)
    place = builder.select(builder.fcmp_ordered("<", place, high), place, high)
    return builder.fptosi(place, INTS)


def _permuted(builder: Builder, table: Value, numbers: Value) -> Value:
    kind = ir.FunctionType(FLOATS, [FLOATS, INTS])
    name = "llvm.x86.avx512.permvar.sf.512"
    function = cgutils.get_or_insert_function(builder.module, kind, name)
    return builder.call(function, [table, numbers])


def _selected(
    builder: Builder, above: Value, lower: Sequence[Value], upper: Sequence[Value]
) -> list[Value]:
    pairs = zip(lower, upper, strict=True)
    return [builder.select(above, high, low) for low, high in pairs]


def _bit(builder: Builder, codes: Value, bit: Value) -> Value:
    """Return whether a bit is set, for each of 16 numbers."""
    mask = splat(builder, builder.shl(ir.Constant(I32, 1), bit))
    return builder.icmp_unsigned("!=", builder.and_(codes, mask), ir.Constant(INTS, None))


def word(builder: Builder, halves: Sequence[Value]) -> Value:
    """Pack two vectors of truth values into one word, the first value lowest."""
    everything = ir.Constant(ir.VectorType(I32, 2 * LANES), list(range(2 * LANES)))
    return builder.bitcast(builder.shuffle_vector(*halves, everything), I32)


@emits
def lowest_levels(builder: Builder) -> Word:
    """Make level number 0 for each of 32 floats."""
    return gather(builder, [ir.Constant(INTS, None)] * 2)


@emits
def raise_levels(
    builder: Builder, levels: Word, x: WordFloats, thresholds: Address, step: Int64
) -> Word:
    """Do one step of a binary search in the floats at an address: level numbers go up by ``step``
    where ``x`` lies above the threshold behind the levels between; NaN lies above none.
    """
    last = builder.add(thresholds, builder.mul(step, ir.Constant(I64, 4)))
    first = builder.sub(last, ir.Constant(I64, 4))
    up = splat(builder, builder.trunc(step, I32))
    after = []
    for half in range(2):
        number = builder.extract_value(levels, half)
        limit = _looked_up(builder, FLOATS, first, number)
        above = builder.fcmp_ordered(">", builder.extract_value(x, half), limit)
        raised = builder.select(above, up, ir.Constant(INTS, None))
        after.append(builder.add(number, raised))
    return gather(builder, after)


@emits
def looked_up(builder: Builder, numbers: Word, table: Address) -> Word:
    """Load the words at an address that 32 numbers stand for."""
    halves = [builder.extract_value(numbers, half) for half in range(2)]
    return gather(builder, [_looked_up(builder, INTS, table, half) for half in halves])


def _looked_up(builder: Builder, kind: Form, table: Value, numbers: Value) -> Value:
    """Load ``table[number]`` into every lane."""
    offsets = builder.shl(builder.zext(numbers, _ADDRESSES), ir.Constant(_ADDRESSES, [2] * LANES))
    places = builder.inttoptr(builder.add(offsets, splat(builder, table)), _POINTERS)
    element = "f32" if kind is FLOATS else "i32"
    function = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(kind, [_POINTERS, I32, TRUTHS, kind]),
        f"llvm.masked.gather.v{LANES}{element}.v{LANES}p0",
    )
    everywhere = ir.Constant(TRUTHS, [1] * LANES)
    return builder.call(
        function, [places, ir.Constant(I32, 4), everywhere, ir.Constant(kind, None)]
    )


@emits
def plane(builder: Builder, codes: Word, bit: Int64) -> UInt32:
    """Pack one bit of each of 32 code numbers into a word, the first one lowest."""
    halves = [builder.extract_value(codes, half) for half in range(2)]
    return word(builder, [_bit(builder, h, builder.trunc(bit, I32)) for h in halves])
