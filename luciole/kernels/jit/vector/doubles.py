"""Sums of products in double precision, in which those of integers of 16 bits are exact."""

from __future__ import annotations

from llvmlite import ir

from luciole.kernels.jit.emits import Address, Builder, Int64, Literal, emits
from luciole.kernels.jit.vector.vectors import (
    DOUBLES,
    F64,
    LANES,
    Doubles,
    Same,
    Vectors,
    addresses,
    gather,
    load,
    of_llvm,
    splat,
    store,
)

ITEM = 8
"""Bytes of a number."""

FMA = "llvm.fmuladd.v16f64"


@emits
def double_rows(builder: Builder, rows: Literal) -> Doubles:
    """Make a tile of zeros, 16 numbers for each row."""
    return ir.Constant(ir.ArrayType(DOUBLES, rows), None)


@emits
def add_row_products(
    builder: Builder, tile: Vectors, x: Address, step: Int64, weights: Address
) -> Same:
    """Add to row i of a tile the number at ``x + i step`` times the 16 at ``weights``."""
    factors = load(builder, DOUBLES, weights)
    sums = [
        of_llvm(
            builder,
            FMA,
            splat(builder, load(builder, F64, address)),
            factors,
            builder.extract_value(tile.value, row),
        )
        for row, address in enumerate(addresses(builder, x, step, tile.kind.count))
    ]
    return gather(builder, sums)


@emits
def store_rows(builder: Builder, tile: Vectors, to: Address) -> None:
    """Write a tile's rows one behind the other."""
    for row in range(tile.kind.count):
        store(builder, builder.extract_value(tile.value, row), to, ITEM * LANES * row)
