"""Xnor-popcount in vector registers: the bits in which words differ, counted by output.

With signs as bits, a product of two rows is n - 2 popcount(a xor b) (Rastegari, Ordonez, Redmon and
Farhadi, XNOR-Net, 2016).
"""

from __future__ import annotations

import functools
import itertools
from typing import Annotated, TypeAlias

from llvmlite import ir

from luciole.kernels.jit.emits import (
    Address,
    Builder,
    Int64,
    Kind,
    Literal,
    Value,
    emits,
    types,
)
from luciole.kernels.jit.processor import has
from luciole.kernels.jit.vector.bit_lookups import LOOKS_UP, WORD_BYTES, look_up, widened
from luciole.kernels.jit.vector.vectors import (
    FLOATS,
    FMA,
    I32,
    INTS,
    LANES,
    OCTETS,
    Floats,
    Ints,
    Same,
    Tile,
    Vectors,
    addresses,
    gather,
    load,
    of_llvm,
    prefetch_line,
    splat,
)

BYTEWISE = not has("avx512vpopcntdq")
"""Whether bits are counted in bytes, because no instruction counts those of 32."""

MOST_WORDS = 255 // (32 if LOOKS_UP else 8)
"""Words whose differing bits a byte can count: of four bits at a time, or of every fourth byte."""

_OCTETS = ir.VectorType(ir.IntType(8), 4 * LANES)

AHEAD = 2048
"""Bytes from the words that are counted to those that are fetched meanwhile: with 1024 to 8192,
weights in the third cache are read nearly at its rate, in 10 to 15 % less time.
"""

MOST_USES = 3
"""How often a word of weights may be met for fetching to pay: where it is met more often, counting
takes longer than reading (Zen 5: 0.75 cycles for each 64 bytes, against 2).
"""


def _chained(counters: Tile, *_: Kind) -> Tile:
    return Tile(types.float32, *(counters.shape[k] for k in (0, 3, 2)))


Chains: TypeAlias = Annotated[Vectors, _chained]
"""Unfinished results [pixels, vectors of outputs, weight planes]."""

Joined: TypeAlias = Annotated[Vectors, lambda chains: Tile(types.float32, *chains.shape[:2])]
"""Results [pixels, vectors of outputs]."""


@emits
def counters(
    builder: Builder, pixels: Literal, planes: Literal, weight_planes: Literal, vectors: Literal
) -> Ints:
    """Make a tile of zeros [pixels, input planes, weight planes, vectors of outputs]; its shape is
    known when a kernel is compiled.
    """
    return ir.Constant(ir.ArrayType(INTS, pixels * planes * weight_planes * vectors), None)


@emits
def float_tile(builder: Builder, rows: Literal, columns: Literal) -> Floats:
    """Make a tile of zeros [rows, columns]."""
    return ir.Constant(ir.ArrayType(FLOATS, rows * columns), None)


@emits
def fill(builder: Builder, tile: Vectors, start: Int64) -> Same:
    """Make a tile of the same shape with a number in every counter."""
    vector = splat(builder, builder.trunc(start, I32))
    return gather(builder, [vector] * tile.kind.count)


def _small(tile: Tile, *_: Kind) -> Tile:
    if not LOOKS_UP:
        return tile
    *shape, vectors = tile.shape
    return Tile(types.uint8, *shape, vectors // 2)


Small: TypeAlias = Annotated[Vectors, _small]
"""Counters of ``xor_popcount``, as many as a tile has."""


@emits
def small_counters(builder: Builder, tile: Vectors) -> Small:
    """Make the counters of ``xor_popcount``: bytes at 0, or a tile itself where words are
    counted.
    """
    if LOOKS_UP:
        return ir.Constant(ir.ArrayType(OCTETS, tile.kind.count // 2), None)
    return ir.Constant(tile.value.type, None) if BYTEWISE else tile.value


@emits
def xor_popcount(
    builder: Builder, tile: Vectors, x: Address, step: Int64, weights: Address
) -> Same:
    """Count the bits in which words differ, and add them to the counters: pixel p's word of plane i
    at ``x + p step + WORD_BYTES i`` against the words [weight planes, outputs] at ``weights``, laid
    out by ``bit_lookups.as_met``.

    One ``vpopcntd`` each, where the machine has it. Else bytes are what can be counted, of
    MOST_WORDS words at the most, see ``small_added``: each counter is four of them, or one where
    their tables are looked up.
    """
    if LOOKS_UP:
        return look_up(builder, tile, addresses(builder, x, step, tile.kind.shape[0]), weights)
    pixels, planes, weight_planes, vectors = tile.kind.shape
    size = weight_planes * vectors
    words = [load(builder, INTS, weights, 4 * LANES * k) for k in range(size)]
    added: list[Value] = []
    for address in addresses(builder, x, step, pixels):
        for i in range(planes):
            word = splat(builder, load(builder, I32, address, 4 * i))
            for weight in words:
                before = builder.extract_value(tile.value, len(added))
                added.append(_counted(builder, before, builder.xor(word, weight)))
    return gather(builder, added)


def _counted(builder: Builder, before: Value, bits: Value) -> Value:
    """Add to a vector of counters the bits that are set in another one."""
    if not BYTEWISE:
        return builder.add(before, of_llvm(builder, "llvm.ctpop.v16i32", bits))
    octets = of_llvm(builder, "llvm.ctpop.v64i8", builder.bitcast(bits, _OCTETS))
    return builder.bitcast(builder.add(builder.bitcast(before, _OCTETS), octets), INTS)


@emits
def small_added(builder: Builder, tile: Vectors, small: Vectors) -> Same:
    """Add to each counter of a tile the count of its ``small_counters``."""
    if not BYTEWISE:
        return small.value
    numbers = [builder.extract_value(small.value, k) for k in range(small.kind.count)]
    sums = widened(builder, numbers) if LOOKS_UP else [_of_four(builder, n) for n in numbers]
    counters = [builder.extract_value(tile.value, k) for k in range(tile.kind.count)]
    return gather(builder, [builder.add(*pair) for pair in zip(counters, sums, strict=True)])


def _of_four(builder: Builder, octets: Value) -> Value:
    """Add up the four bytes of each counter."""
    return _halves_added(builder, _halves_added(builder, octets, 8, 0x00FF00FF), 16, 0xFFFF)


def _halves_added(builder: Builder, vector: Value, by: int, mask: int) -> Value:
    """Add to the numbers under a mask the numbers ``by`` bits above."""
    low = builder.and_(vector, splat(builder, ir.Constant(I32, mask)))
    high = builder.lshr(vector, splat(builder, ir.Constant(I32, by)))
    return builder.add(low, builder.and_(high, splat(builder, ir.Constant(I32, mask))))


@emits
def prefetch_words(builder: Builder, tile: Vectors, weights: Address) -> None:
    """Fetch the words [weight planes, outputs] that stand AHEAD bytes behind an address, where a
    tile's shape says that this pays.
    """
    pixels, planes, weight_planes, vectors = tile.kind.shape
    lines = weight_planes * vectors * WORD_BYTES // 4 if pixels * planes <= MOST_USES else 0
    for line in range(lines):
        prefetch_line(builder, weights, AHEAD + 4 * LANES * line, 3)


@emits
def begin_chains(builder: Builder, tile: Vectors, start: Address, step: Int64) -> Chains:
    """Begin the sums that counters [pixels, input planes, weight planes, vectors of outputs] make
    results of: a chain for each weight plane, so that they hide each other's latency. Pixel p's
    start stands at ``start + p step``.
    """
    pixels, _, weight_planes, vectors = tile.kind.shape
    nothing = [ir.Constant(FLOATS, None)] * (weight_planes - 1)
    chains: list[Value] = []
    for address in addresses(builder, start, step, pixels):
        for v in range(vectors):
            chains += [load(builder, FLOATS, address, 4 * LANES * v), *nothing]
    return gather(builder, chains)


@emits
def scale_accumulate(builder: Builder, chains: Vectors, tile: Vectors, factors: Address) -> Same:
    """Add to each chain factor_ij counter_ij of its weight plane j, over the input planes i;
    ``factors`` is the address of [input planes, weight planes, outputs].
    """
    pixels, planes, weight_planes, vectors = tile.kind.shape
    products = planes * weight_planes
    sums = [builder.extract_value(chains.value, k) for k in range(chains.kind.count)]
    for p, v, k in itertools.product(range(pixels), range(vectors), range(products)):
        counter = builder.extract_value(tile.value, (p * products + k) * vectors + v)
        factor = load(builder, FLOATS, factors, 4 * LANES * (k * vectors + v))
        place = (p * vectors + v) * weight_planes + k % weight_planes
        number = builder.sitofp(counter, FLOATS)
        sums[place] = of_llvm(builder, FMA, number, factor, sums[place])
    return gather(builder, sums)


@emits
def joined(builder: Builder, chains: Vectors) -> Joined:
    """Add up the chains of each result."""
    each = chains.kind.shape[2]
    each_chain = [builder.extract_value(chains.value, k) for k in range(chains.kind.count)]
    parts = (each_chain[k : k + each] for k in range(0, len(each_chain), each))
    return gather(builder, [functools.reduce(builder.fadd, part) for part in parts])
