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
    Truth,
    UInt32,
    Value,
    emits,
    types,
)
from luciole.kernels.jit.scalars import I64
from luciole.kernels.jit.vector.bit_lookups import store_word
from luciole.kernels.jit.vector.masked import TRUTHS, lanes_before, load_first
from luciole.kernels.jit.vector.vectors import (
    F32,
    FLOATS,
    I32,
    INTS,
    LANES,
    Floats,
    Ints,
    Tile,
    Vectors,
    gather,
    load,
    splat,
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
