"""Floats in vector registers to bit planes: 32 inputs at once find their levels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils

from luciole.kernels.jit.masked import TRUTHS, lanes_before, load_first
from luciole.kernels.jit.scalars import I64, intrinsic, literal_intrinsic, types
from luciole.kernels.jit.vectors import (
    F32,
    FLOATS,
    I32,
    INTS,
    LANES,
    Tile,
    gather,
    load,
    splat,
    store,
)

_WORD = Tile(types.int32, 2)
WORD_FLOATS = Tile(types.float32, 2)
_POINTERS = ir.VectorType(ir.IntType(8).as_pointer(), LANES)
_ADDRESSES = ir.VectorType(I64, LANES)


@intrinsic
def word_floats(typing_context: Any, address: Any) -> Any:
    """The 32 floats at an address as a tile."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return gather(builder, [load(builder, FLOATS, args[0], 4 * LANES * h) for h in range(2)])

    return WORD_FLOATS(types.int64), generate


@intrinsic
def first_floats(typing_context: Any, address: Any, count: Any) -> Any:
    """The first ``count`` of 32 floats at an address, NaN for the others, which are not touched."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address, count = args
        nan = ir.Constant(FLOATS, [float("nan")] * LANES)
        halves = [
            load_first(
                builder, address, 4 * LANES * h, lanes_before(builder, count, LANES * h), nan
            )
            for h in range(2)
        ]
        return gather(builder, halves)

    return WORD_FLOATS(types.int64, types.int64), generate


def _splats(element: Any, scalar: Any) -> Any:
    """An intrinsic that reads numbers, each into all lanes of a vector of its own."""

    def typed(typing_context: Any, address: Any, count: Any) -> Any:
        if not isinstance(count, types.IntegerLiteral):
            return None
        tile = Tile(element, count.literal_value)

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            numbers = [load(builder, scalar, args[0], 4 * i) for i in range(tile.count)]
            if not numbers:
                return ir.Constant(ir.ArrayType(ir.VectorType(scalar, LANES), 0), ir.Undefined)
            return gather(builder, [splat(builder, number) for number in numbers])

        return tile(types.int64, count), generate

    return typed


@literal_intrinsic
def float_splats(typing_context: Any, address: Any, count: Any) -> Any:
    """``count`` floats at an address (a number known when a kernel is compiled), each in all lanes
    of a vector of its own.
    """
    return _splats(types.float32, F32)(typing_context, address, count)


@literal_intrinsic
def word_splats(typing_context: Any, address: Any, count: Any) -> Any:
    """Like ``float_splats`` for words."""
    return _splats(types.int32, I32)(typing_context, address, count)


@intrinsic
def is_empty(typing_context: Any, tile: Any) -> Any:
    """Whether a tile has no vectors, known when a kernel is compiled."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return context.get_constant(types.boolean, tile.count == 0)

    return types.boolean(tile), generate


@intrinsic
def encode_word(
    typing_context: Any, x: Any, thresholds: Any, codes: Any, mask: Any, to: Any
) -> Any:
    """Write the code numbers of 32 floats as one word per bit, cut off by ``mask``, to an address.

    ``thresholds`` is a tile of 2^K - 1 rising numbers, and the tile ``codes`` holds the code of
    each level; where that is empty the levels' own numbers are the codes. The search is binary: the
    next threshold is selected by the last comparison. What the comparisons give are the bits of the
    level's number: no number is ever made of them.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        x, thresholds, codes, mask, to = args
        limits = [builder.extract_value(thresholds, i) for i in range(signature.args[1].count)]
        numbers = [builder.extract_value(codes, i) for i in range(signature.args[2].count)]
        halves = [
            _code_bits(builder, builder.extract_value(x, half), limits, numbers)
            for half in range(2)
        ]
        for bit, pair in enumerate(zip(*halves, strict=True)):
            bits = builder.and_(word(builder, pair), builder.trunc(mask, I32))
            store(builder, bits, to, 4 * bit)
        return context.get_dummy_value()

    given = (WORD_FLOATS, thresholds, codes, types.int64, types.int64)
    return types.void(*given), generate


def _code_bits(builder: Any, x: Any, limits: Sequence[Any], codes: Sequence[Any]) -> list[Any]:
    """The bits of the code of each ``x``, lowest first."""
    found: list[Any] = []
    left = list(limits)
    while left:
        middle = len(left) // 2
        above = builder.fcmp_ordered(">", x, left[middle])
        left = _selected(builder, above, left[:middle], left[middle + 1 :])
        half = len(codes) // 2
        codes = _selected(builder, above, codes[:half], codes[half:])
        found.append(above)
    if not codes:
        return found[::-1]
    return [_bit(builder, codes[0], ir.Constant(I32, i)) for i in range(len(found))]


def _selected(builder: Any, above: Any, lower: Sequence[Any], upper: Sequence[Any]) -> list[Any]:
    pairs = zip(lower, upper, strict=True)
    return [builder.select(above, high, low) for low, high in pairs]


def _bit(builder: Any, codes: Any, bit: Any) -> Any:
    """Whether a bit is set, for each of 16 numbers."""
    mask = splat(builder, builder.shl(ir.Constant(I32, 1), bit))
    return builder.icmp_unsigned("!=", builder.and_(codes, mask), ir.Constant(INTS, None))


def word(builder: Any, halves: Sequence[Any]) -> Any:
    """Two vectors of truth values as one word, the first value lowest."""
    everything = ir.Constant(ir.VectorType(I32, 2 * LANES), list(range(2 * LANES)))
    return builder.bitcast(builder.shuffle_vector(*halves, everything), I32)


@intrinsic
def lowest_levels(typing_context: Any) -> Any:
    """Level number 0 for each of 32 floats."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return gather(builder, [ir.Constant(INTS, None)] * 2)

    return _WORD(), generate


@intrinsic
def raise_levels(typing_context: Any, levels: Any, x: Any, thresholds: Any, step: Any) -> Any:
    """One step of a binary search in the floats at an address: level numbers go up by ``step``
    where ``x`` lies above the threshold behind the levels between; NaN lies above none.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        levels, x, thresholds, step = args
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

    return _WORD(_WORD, WORD_FLOATS, types.int64, types.int64), generate


@intrinsic
def looked_up(typing_context: Any, numbers: Any, table: Any) -> Any:
    """The words at an address that 32 numbers stand for."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        numbers = [builder.extract_value(args[0], half) for half in range(2)]
        return gather(builder, [_looked_up(builder, INTS, args[1], n) for n in numbers])

    return _WORD(_WORD, types.int64), generate


def _looked_up(builder: Any, kind: Any, table: Any, numbers: Any) -> Any:
    """``table[number]`` in every lane."""
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


@intrinsic
def plane(typing_context: Any, codes: Any, bit: Any) -> Any:
    """The word that holds one bit of each of 32 code numbers, the first one lowest."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        codes, bit = args
        halves = [builder.extract_value(codes, half) for half in range(2)]
        return word(builder, [_bit(builder, h, builder.trunc(bit, I32)) for h in halves])

    return types.uint32(_WORD, types.int64), generate
