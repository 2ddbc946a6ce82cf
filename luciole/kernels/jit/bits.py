"""Bits in vector registers: floats to bit planes, and words that differ counted by output."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from luciole.kernels.jit.scalars import I64, intrinsic, literal_intrinsic, types
from luciole.kernels.jit.vectors import (
    F32,
    FLOATS,
    FMA,
    I32,
    INTS,
    LANES,
    Tile,
    addresses,
    gather,
    load,
    of_llvm,
    splat,
    store,
)


@literal_intrinsic
def counters(context: Any, pixels: Any, planes: Any, weight_planes: Any, vectors: Any) -> Any:
    """A tile of zeros [pixels, input planes, weight planes, vectors of outputs]; its shape is
    known when a kernel is compiled.
    """
    given = (pixels, planes, weight_planes, vectors)
    if not all(isinstance(n, types.IntegerLiteral) for n in given):
        return None
    tile = Tile(types.int32, *(n.literal_value for n in given))

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return ir.Constant(ir.ArrayType(INTS, tile.count), None)

    return tile(*given), generate


@intrinsic
def fill(typing_context: Any, tile: Any, start: Any) -> Any:
    """A tile of the same shape with a number in every counter."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = splat(builder, builder.trunc(args[1], I32))
        return gather(builder, [vector] * tile.count)

    return tile(tile, types.int64), generate


@intrinsic
def count(typing_context: Any, tile: Any, x: Any, step: Any, weights: Any) -> Any:
    """Add the bits in which words differ: pixel p's word of plane i at ``x + p step + 4 i``
    against the words [weight planes, outputs] at ``weights``.
    """
    pixels, planes, weight_planes, vectors = tile.shape

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        tile_value, x, step, weights = args
        size = weight_planes * vectors
        words = [load(builder, INTS, weights, 4 * LANES * k) for k in range(size)]
        added: list[Any] = []
        for address in addresses(builder, x, step, pixels):
            for i in range(planes):
                word = splat(builder, load(builder, I32, address, 4 * i))
                for weight in words:
                    bits = of_llvm(builder, "llvm.ctpop.v16i32", builder.xor(word, weight))
                    before = builder.extract_value(tile_value, len(added))
                    added.append(builder.add(before, bits))
        return gather(builder, added)

    return tile(tile, types.int64, types.int64, types.int64), generate


@intrinsic
def weigh(typing_context: Any, tile: Any, factors: Any, start: Any, step: Any) -> Any:
    """Counters as results [pixels, vectors of outputs]: start + sum_ij factor_ij counter_ij.

    ``factors`` is the address of [input planes, weight planes, outputs]; pixel p's start stands at
    ``start + p step``.
    """
    pixels, planes, weight_planes, vectors = tile.shape
    products = planes * weight_planes

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        tile_value, factors, start, step = args
        results = []
        for p, address in enumerate(addresses(builder, start, step, pixels)):
            for v in range(vectors):
                chains = [load(builder, FLOATS, address, 4 * LANES * v)]
                chains += [ir.Constant(FLOATS, None)] * (weight_planes - 1)
                for k in range(products):
                    counter = builder.extract_value(tile_value, (p * products + k) * vectors + v)
                    factor = load(builder, FLOATS, factors, 4 * LANES * (k * vectors + v))
                    number, chain = builder.sitofp(counter, FLOATS), k % weight_planes
                    chains[chain] = of_llvm(builder, FMA, number, factor, chains[chain])
                results.append(functools.reduce(builder.fadd, chains))
        return gather(builder, results)

    rows = Tile(types.float32, pixels, vectors)
    return rows(tile, types.int64, types.int64, types.int64), generate


_WORD = Tile(types.int32, 2)
_WORD_FLOATS = Tile(types.float32, 2)


@intrinsic
def word_floats(typing_context: Any, address: Any) -> Any:
    """The 32 floats at an address as a tile."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return gather(builder, [load(builder, FLOATS, args[0], 4 * LANES * h) for h in range(2)])

    return _WORD_FLOATS(types.int64), generate


@intrinsic
def word_codes(typing_context: Any, code: Any) -> Any:
    """A tile with the same code number 32 times."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return gather(builder, [splat(builder, builder.trunc(args[0], I32))] * 2)

    return _WORD(types.int64), generate


@intrinsic
def toggled(typing_context: Any, codes: Any, x: Any, threshold: Any, bits: Any) -> Any:
    """Code numbers, with ``bits`` toggled where ``x`` lies above a threshold; NaN lies above
    none.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        codes, x, threshold, bits = args
        limit, toggle = splat(builder, threshold), splat(builder, bits)
        after = []
        for half in range(2):
            above = builder.fcmp_ordered(">", builder.extract_value(x, half), limit)
            change = builder.select(above, toggle, ir.Constant(INTS, None))
            after.append(builder.xor(builder.extract_value(codes, half), change))
        return gather(builder, after)

    return _WORD(_WORD, _WORD_FLOATS, types.float32, types.uint32), generate


@intrinsic
def plane(typing_context: Any, codes: Any, bit: Any) -> Any:
    """The word that holds one bit of each of 32 code numbers, the first one lowest."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        mask = splat(builder, builder.trunc(builder.shl(ir.Constant(I64, 1), args[1]), I32))
        masked = [builder.and_(builder.extract_value(args[0], half), mask) for half in range(2)]
        zero = ir.Constant(INTS, None)
        return _word(builder, [builder.icmp_unsigned("!=", m, zero) for m in masked])

    return types.uint32(_WORD, types.int64), generate


def _word(builder: Any, halves: Sequence[Any]) -> Any:
    """Two vectors of truth values as one word, the first value lowest."""
    low, high = (builder.zext(builder.bitcast(h, ir.IntType(LANES)), I32) for h in halves)
    return builder.or_(low, builder.shl(high, ir.Constant(I32, LANES)))


@intrinsic
def search(typing_context: Any, tile: Any, x: Any, thresholds: Any, mask: Any, to: Any) -> Any:
    """Find the level of 32 floats by binary search and write its number as one word per bit.

    There are as many bits as ``tile`` has input planes. ``x`` is a tile of floats, ``thresholds``
    and ``to`` are addresses; words are cut off by ``mask``.
    """
    count = tile.shape[1]

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _, x, thresholds, mask, to = args
        limits = [
            splat(builder, load(builder, F32, thresholds, 4 * i)) for i in range(2**count - 1)
        ]
        halves = [_searched(builder, builder.extract_value(x, half), limits) for half in range(2)]
        for bit, pair in enumerate(zip(*halves, strict=True)):
            word = builder.and_(_word(builder, pair), builder.trunc(mask, I32))
            store(builder, word, to, 4 * (count - 1 - bit))
        return context.get_dummy_value()

    return types.void(tile, _WORD_FLOATS, types.int64, types.int64, types.int64), generate


def _searched(builder: Any, x: Any, limits: Sequence[Any]) -> list[Any]:
    """The bits of the number of limits (2^n - 1, rising) that lie below ``x``, highest first."""
    found: list[Any] = []
    while limits:
        middle = len(limits) // 2
        above = builder.fcmp_ordered(">", x, limits[middle])
        pairs = zip(limits[:middle], limits[middle + 1 :], strict=True)
        limits = [builder.select(above, upper, lower) for lower, upper in pairs]
        found.append(above)
    return found
