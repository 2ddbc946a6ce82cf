"""Words in vector registers that differ, counted by output."""

from __future__ import annotations

import functools
from typing import Any

from llvmlite import ir

from luciole.kernels.jit.scalars import intrinsic, literal_intrinsic, types
from luciole.kernels.jit.vectors import (
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
    prefetch_line,
    splat,
)

AHEAD = 2048
"""Bytes from the words that are counted to those that are fetched meanwhile: with 1024 to 8192,
weights in the third cache are read nearly at its rate, in 10 to 15 % less time.
"""

MOST_USES = 3
"""How often a word of weights may be met for fetching to pay: where it is met more often, counting
takes longer than reading (Zen 5: 0.75 cycles for each 64 bytes, against 2).
"""


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


@literal_intrinsic
def float_tile(context: Any, rows: Any, columns: Any) -> Any:
    """A tile of zeros [rows, columns]."""
    if not all(isinstance(n, types.IntegerLiteral) for n in (rows, columns)):
        return None
    tile = Tile(types.float32, rows.literal_value, columns.literal_value)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return ir.Constant(ir.ArrayType(FLOATS, tile.count), None)

    return tile(rows, columns), generate


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
def prefetch_words(typing_context: Any, tile: Any, weights: Any) -> Any:
    """Fetch the words [weight planes, outputs] that stand AHEAD bytes behind an address, where a
    tile's shape says that this pays.
    """
    pixels, planes, weight_planes, vectors = tile.shape
    lines = weight_planes * vectors if pixels * planes <= MOST_USES else 0

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        for line in range(lines):
            prefetch_line(builder, args[1], AHEAD + 4 * LANES * line, 3)
        return context.get_dummy_value()

    return types.void(tile, types.int64), generate


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
