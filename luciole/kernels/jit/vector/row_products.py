"""Sums of products of int16 and bytes, as matrices have them: along a row of both, or along a row
of one and down 16 columns of the other.
"""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils

from luciole.kernels.jit.emits import Address, Builder, Int64, Literal, emits
from luciole.kernels.jit.scalars import I64
from luciole.kernels.jit.vector.short_pairs import pair_in_all, pair_products, widened_pairs
from luciole.kernels.jit.vector.vectors import (
    BYTES,
    I32,
    INTS,
    LANES,
    SHORT_PAIRS,
    Ints,
    Same,
    Vectors,
    addresses,
    gather,
    load,
    store,
)

SPAN = 2 * LANES
"""Products of a row that are added at a time."""

_SPAN_BYTES = ir.VectorType(BYTES.element, SPAN)


@emits
def no_sums(builder: Builder, rows: Literal) -> Ints:
    """Make a tile of zeros, 16 sums for each row."""
    return ir.Constant(ir.ArrayType(INTS, rows), None)


@emits
def add_span(builder: Builder, tile: Vectors, x: Address, right: Address) -> Same:
    """Add the products of 32 int16 and 32 bytes, two to each lane."""
    factors = builder.sext(load(builder, _SPAN_BYTES, right, align=1), SHORT_PAIRS)
    products = pair_products(builder, load(builder, SHORT_PAIRS, x), factors)
    return gather(builder, [builder.add(builder.extract_value(tile.value, 0), products)])


@emits
def add_two_rows(
    builder: Builder, tile: Vectors, x: Address, step: Int64, right: Address, next_: Int64
) -> Same:
    """Add to row i of a tile the two int16 at ``x + i step`` times the 16 bytes at ``right`` and
    those ``next_`` bytes behind them.
    """
    below = builder.add(right, next_)
    both = [load(builder, BYTES, place, align=1) for place in (right, below)]
    factors, sums = widened_pairs(builder, *both, signed=True), []
    for row, place in enumerate(addresses(builder, x, step, tile.kind.count)):
        pair = pair_in_all(builder, builder.sext(load(builder, I32, place, align=2), I64))
        before = builder.extract_value(tile.value, row)
        sums.append(builder.add(before, pair_products(builder, pair, factors)))
    return gather(builder, sums)


@emits
def total(builder: Builder, tile: Vectors) -> Int64:
    """Add up the lanes of the first row."""
    name = f"llvm.vector.reduce.add.v{LANES}i32"
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(I32, [INTS]), name)
    return builder.sext(builder.call(function, [builder.extract_value(tile.value, 0)]), I64)


@emits
def store_sums(builder: Builder, tile: Vectors, to: Address) -> None:
    """Write a tile's rows one behind the other."""
    for row in range(tile.kind.count):
        store(builder, builder.extract_value(tile.value, row), to, 4 * LANES * row)
