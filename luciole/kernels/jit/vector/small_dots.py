"""Sums of products of bytes and of weights so small that some of them fit into int16, as those of 4
bits do: four products for each lane at a time, two of them in each half of the lane
(``vpmaddubsw``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from llvmlite import ir
from numba.core import cgutils

from luciole.kernels.jit.emits import Address, Builder, Form, Int64, Value, emits
from luciole.kernels.jit.processor import adds_four_products, has
from luciole.kernels.jit.vector.pixels import Places, add_words
from luciole.kernels.jit.vector.vectors import (
    I16,
    I32,
    LANES,
    Same,
    Vectors,
    gather,
    wide_shuffle,
)

MOST_SUM = 2**15 - 1
"""Largest magnitude of the sums that are int16."""

BYTE = ir.IntType(8)

Compute: TypeAlias = Callable[..., Value]
"""Function that writes the code of one half of a vector."""

ONES = ir.Constant(ir.VectorType(I16, LANES), [1] * LANES)


def adds_small_dots() -> bool:
    """Return whether the machine has the instruction, and none that does all at once."""
    return has("avx2") and not adds_four_products()


@emits
def add_small_dots(
    builder: Builder, tile: Vectors, at: Places, offset: Int64, weights: Address
) -> Same:
    """Add to each pixel's row, two int16 in each lane, the products of the pixel's own four bytes,
    ``offset`` bytes behind its address, with the bytes [vectors, 16, 4] at ``weights``. Sums must
    fit.
    """
    return add_words(builder, tile, at, offset, weights, _with_products)


@emits
def with_small_sums(builder: Builder, tile: Vectors, small: Vectors) -> Same:
    """Add both int16 of each lane of another tile to the int32 of one."""
    sums = []
    for i in range(tile.kind.count):
        pair = (builder.extract_value(t.value, i) for t in (tile, small))
        sums.append(_both(builder, _pairs, *pair))
    return gather(builder, sums)


@emits
def cleared(_: Builder, tile: Vectors) -> Same:
    """Make a tile of zeros in the shape of another one."""
    return ir.Constant(tile.value.type, None)


def _both(builder: Builder, compute: Compute, *operands: Value) -> Value:
    """Compute on both halves of vectors of 16 lanes, which AVX2 has a register for each of."""
    parts = [list(range(first, first + LANES // 2)) for first in (0, LANES // 2)]
    low, high = (
        compute(builder, *[wide_shuffle(builder, v, v, lanes) for v in operands]) for lanes in parts
    )
    return wide_shuffle(builder, low, high, list(range(LANES)))


def _with_products(builder: Builder, sums: Value, unsigned: Value, signed: Value) -> Value:
    """Add two sums of two products to each of 16 lanes."""
    return _both(builder, _products, sums, unsigned, signed)


def _products(builder: Builder, sums: Value, unsigned: Value, signed: Value) -> Value:
    """Add two sums of two products to each lane."""
    factors = (_cast(builder, v, BYTE) for v in (unsigned, signed))
    products = _called(builder, "pmadd.ub.sw", I16, *factors)
    return builder.bitcast(builder.add(_cast(builder, sums, I16), products), sums.type)


def _pairs(builder: Builder, sums: Value, small: Value) -> Value:
    """Add the two int16 of each lane."""
    return builder.add(sums, _called(builder, "pmadd.wd", I32, _cast(builder, small, I16), ONES))


def _cast(builder: Builder, value: Value, element: Form) -> Value:
    """See half a vector as smaller integers."""
    return builder.bitcast(value, ir.VectorType(element, 16 * LANES // element.width))


def _called(builder: Builder, name: str, element: Form, *operands: Value) -> Value:
    """Call an instruction of AVX2."""
    result = ir.VectorType(element, 16 * LANES // element.width)
    kind = ir.FunctionType(result, [v.type for v in operands])
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.x86.avx2.{name}")
    return builder.call(function, list(operands))
