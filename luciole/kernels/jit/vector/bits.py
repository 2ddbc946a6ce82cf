"""Xnor-popcount in vector registers: the bits in which words differ, counted by output.

With signs as bits, a product of two rows is n - 2 popcount(a xor b) (Rastegari, Ordonez, Redmon and
Farhadi, XNOR-Net, 2016).
"""

from __future__ import annotations

import functools
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
from luciole.kernels.jit.vector.vectors import (
    FLOATS,
    FMA,
    I32,
    INTS,
    LANES,
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

AHEAD = 2048
"""Bytes from the words that are counted to those that are fetched meanwhile: with 1024 to 8192,
weights in the third cache are read nearly at its rate, in 10 to 15 % less time.
"""

MOST_USES = 3
"""How often a word of weights may be met for fetching to pay: where it is met more often, counting
takes longer than reading (Zen 5: 0.75 cycles for each 64 bytes, against 2).
"""


def _scaled(counters: Tile, *_: Kind) -> Tile:
    return Tile(types.float32, counters.shape[0], counters.shape[3])


Scaled: TypeAlias = Annotated[Vectors, _scaled]
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


@emits
def xor_popcount(
    builder: Builder, tile: Vectors, x: Address, step: Int64, weights: Address
) -> Same:
    """Count the bits in which words differ, and add them to the counters: pixel p's word of plane i
    at ``x + p step + 4 i`` against the words [weight planes, outputs] at ``weights``. One
    ``vpopcntd`` each, where the machine has it.
    """
    pixels, planes, weight_planes, vectors = tile.kind.shape
    size = weight_planes * vectors
    words = [load(builder, INTS, weights, 4 * LANES * k) for k in range(size)]
    added: list[Value] = []
    for address in addresses(builder, x, step, pixels):
        for i in range(planes):
            word = splat(builder, load(builder, I32, address, 4 * i))
            for weight in words:
                bits = of_llvm(builder, "llvm.ctpop.v16i32", builder.xor(word, weight))
                before = builder.extract_value(tile.value, len(added))
                added.append(builder.add(before, bits))
    return gather(builder, added)


@emits
def prefetch_words(builder: Builder, tile: Vectors, weights: Address) -> None:
    """Fetch the words [weight planes, outputs] that stand AHEAD bytes behind an address, where a
    tile's shape says that this pays.
    """
    pixels, planes, weight_planes, vectors = tile.kind.shape
    lines = weight_planes * vectors if pixels * planes <= MOST_USES else 0
    for line in range(lines):
        prefetch_line(builder, weights, AHEAD + 4 * LANES * line, 3)


@emits
def scale_accumulate(
    builder: Builder, tile: Vectors, factors: Address, start: Address, step: Int64
) -> Scaled:
    """Scale and add up counters: results [pixels, vectors of outputs] are start + sum_ij factor_ij
    counter_ij.

    ``factors`` is the address of [input planes, weight planes, outputs]; pixel p's start stands at
    ``start + p step``.
    """
    pixels, planes, weight_planes, vectors = tile.kind.shape
    products = planes * weight_planes
    results = []
    for p, address in enumerate(addresses(builder, start, step, pixels)):
        for v in range(vectors):
            chains = [load(builder, FLOATS, address, 4 * LANES * v)]
            chains += [ir.Constant(FLOATS, None)] * (weight_planes - 1)
            for k in range(products):
                counter = builder.extract_value(tile.value, (p * products + k) * vectors + v)
                factor = load(builder, FLOATS, factors, 4 * LANES * (k * vectors + v))
                number, chain = builder.sitofp(counter, FLOATS), k % weight_planes
                chains[chain] = of_llvm(builder, FMA, number, factor, chains[chain])
            results.append(functools.reduce(builder.fadd, chains))
    return gather(builder, results)
