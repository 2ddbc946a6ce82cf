"""Sums of products of floats and integers of 4 bits, which are scaled as they are read."""

from __future__ import annotations

from llvmlite import ir

from luciole.kernels.jit.emits import Address, Builder, Int64, Value, emits
from luciole.kernels.jit.vector.pixels import Places, behind
from luciole.kernels.jit.vector.vectors import (
    BYTES,
    F32,
    FLOATS,
    FMA,
    INTS,
    LANES,
    Same,
    Vectors,
    gather,
    load,
    of_llvm,
    splat,
)

SIGN = 8
"""Number that makes integers from -8 to 7 nibbles without a sign."""


@emits
def add_nibbles(
    builder: Builder, tile: Vectors, at: Places, offset: Int64, weights: Address, scales: Address
) -> Same:
    """Add to each pixel's row the products of the pixel's own two floats, ``offset`` bytes behind
    its address, with the real numbers that the nibbles [vectors, 16] at ``weights`` stand for: of
    each byte the lower one for the first float. ``scales`` is the address of floats [vectors, 16],
    and of those times -8 behind them.
    """
    vectors = tile.kind.shape[1]
    pairs = [_real(builder, v, vectors, weights, scales) for v in range(vectors)]
    results: list[Value] = []
    for address in behind(builder, at, offset):
        numbers = [splat(builder, load(builder, F32, address, 4 * k)) for k in (0, 1)]
        for pair in pairs:
            sum_ = builder.extract_value(tile.value, len(results))
            for number, weight in zip(numbers, pair, strict=True):
                sum_ = of_llvm(builder, FMA, number, weight, sum_)
            results.append(sum_)
    return gather(builder, results)


def _real(builder: Builder, v: int, vectors: int, weights: Value, scales: Value) -> list[Value]:
    """Load 16 bytes and scale their lower and their upper nibbles."""
    codes = builder.zext(load(builder, BYTES, weights, LANES * v, align=1), INTS)
    low, bits = (ir.Constant(INTS, [n] * LANES) for n in (15, 4))
    scale = load(builder, FLOATS, scales, 4 * LANES * v)
    least = load(builder, FLOATS, scales, 4 * LANES * (vectors + v))
    halves = (builder.and_(codes, low), builder.lshr(codes, bits))
    return [of_llvm(builder, FMA, builder.sitofp(n, FLOATS), scale, least) for n in halves]
