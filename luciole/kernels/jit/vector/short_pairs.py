"""Pairs of integers of 16 bits in vector registers, multiplied by others and added up: two products
for each lane of 32 bits.
"""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils

from luciole.kernels.jit.emits import Builder, Value
from luciole.kernels.jit.processor import has
from luciole.kernels.jit.vector.vectors import (
    I32,
    INTS,
    LANES,
    SHORT_PAIRS,
    by_halves,
    splat,
    wide_shuffle,
)


def widened_pairs(builder: Builder, x: Value, y: Value, *, signed: bool) -> Value:
    """Interleave 16 bytes of a vector and 16 of another as int16."""
    widen, half = builder.sext if signed else builder.zext, LANES // 2
    shorts = ir.VectorType(SHORT_PAIRS.element, LANES)
    lower, upper = (
        widen(wide_shuffle(builder, x, y, _zipped(first)), shorts) for first in (0, half)
    )
    return wide_shuffle(builder, lower, upper, range(2 * LANES))


def _zipped(first: int) -> list[int]:
    """Return the order in which 8 elements of two vectors are interleaved, from one on."""
    return [first + k // 2 + LANES * (k % 2) for k in range(LANES)]


def pair_products(builder: Builder, a: Value, b: Value) -> Value:
    """Multiply 32 int16 by 32 others, and add the products of each lane's two: ``vpmaddwd``."""
    if has("avx512bw"):
        kind = ir.FunctionType(INTS, [SHORT_PAIRS, SHORT_PAIRS])
        name = "llvm.x86.avx512.pmaddw.d.512"
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [a, b])
    if has("avx2"):
        return by_halves(builder, "pmadd.wd", INTS, a, b)
    products = []
    for first in (0, 1):
        some = list(range(first, 2 * LANES, 2))
        x, y = (builder.sext(wide_shuffle(builder, v, v, some), INTS) for v in (a, b))
        products.append(builder.mul(x, y))
    return builder.add(*products)


def pair_in_all(builder: Builder, pair: Value) -> Value:
    """Broadcast the two int16 that an int32 holds to every lane."""
    return builder.bitcast(splat(builder, builder.trunc(pair, I32)), SHORT_PAIRS)
