"""Sums of products for pixels that lie anywhere: tiles [pixels, vectors of outputs] of floats, and
the pixels' addresses beside them in registers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, TypeAlias

from llvmlite import ir
from numba.extending import models, register_model

from luciole.kernels.jit.emits import (
    Address,
    Builder,
    Float32,
    Form,
    Int64,
    Kind,
    Literal,
    Operand,
    Value,
    emits,
    types,
)
from luciole.kernels.jit.scalars import I64
from luciole.kernels.jit.vector.masked import lanes_before, load_first
from luciole.kernels.jit.vector.results import between, store_rows
from luciole.kernels.jit.vector.vectors import (
    F32,
    FLOATS,
    FMA,
    I32,
    INTS,
    LANES,
    Floats,
    Same,
    Vectors,
    addresses,
    gather,
    load,
    of_llvm,
    splat,
)


class Addresses(types.Type):  # type: ignore[misc]  # numba is not typed
    """The type of a few addresses that stay in registers."""

    def __init__(self, count: int) -> None:
        self.count = count
        super().__init__(name=f"Addresses({count})")


@register_model(Addresses)
class _AddressesModel(models.PrimitiveModel):  # type: ignore[misc]  # numba is not typed
    def __init__(self, manager: Kind, addresses: Addresses) -> None:
        super().__init__(manager, addresses, ir.ArrayType(I64, addresses.count))


Places: TypeAlias = Operand[Addresses]

Pixels: TypeAlias = Annotated[Places, lambda count, *_: Addresses(count)]
"""Addresses of pixels, as many as the first operand, a ``Literal``, says."""

Place: TypeAlias = Annotated[Places, Addresses(1)]
"""A single address."""


@emits
def pixels(builder: Builder, count: Literal, base: Address, table: Address, unit: Int64) -> Pixels:
    """Compute addresses of ``count`` (known when a kernel is compiled) pixels, by int32 distances
    from ``base`` in units of ``unit`` bytes that stand at ``table``.
    """
    array = ir.Constant(ir.ArrayType(I64, count), ir.Undefined)
    for i in range(count):
        distance = builder.sext(load(builder, I32, table, 4 * i), I64)
        address = builder.add(base, builder.mul(distance, unit))
        array = builder.insert_value(array, address, i)
    return array


@emits
def place(builder: Builder, address: Address) -> Place:
    """Make the one pixel at an address."""
    return builder.insert_value(ir.Constant(ir.ArrayType(I64, 1), ir.Undefined), address, 0)


@emits
def side_by_side(builder: Builder, count: Literal, at: Places, step: Int64) -> Pixels:
    """Compute addresses of ``count`` (known when a kernel is compiled) pixels from the first one of
    ``at`` on, ``step`` bytes from one to the next.
    """
    array = ir.Constant(ir.ArrayType(I64, count), ir.Undefined)
    places = addresses(builder, builder.extract_value(at.value, 0), step, count)
    for i, place in enumerate(places):
        array = builder.insert_value(array, place, i)
    return array


def repeated(builder: Builder, form: Form, pixels: int, vectors: int, start: Value) -> Value:
    """Make a tile [pixels, vectors] whose rows, of vectors of an LLVM type, all stand at one
    address.
    """
    size = form.element.width // 8 if isinstance(form.element, ir.IntType) else 4
    row = [load(builder, form, start, size * LANES * v) for v in range(vectors)]
    return gather(builder, row * pixels)


@emits
def rows_of(builder: Builder, pixels: Literal, vectors: Literal, start: Address) -> Floats:
    """Make a tile [pixels, vectors] whose rows are all the floats at ``start``."""
    return repeated(builder, FLOATS, pixels, vectors, start)


@emits
def add_scaled(
    builder: Builder, tile: Vectors, at: Places, offset: Int64, weights: Address
) -> Same:
    """Add to each pixel's row the floats [vectors] at ``weights`` times the pixel's own float,
    ``offset`` bytes behind its address.
    """
    vectors = tile.kind.shape[1]
    factors = [load(builder, FLOATS, weights, 4 * LANES * v) for v in range(vectors)]
    results: list[Value] = []
    for address in behind(builder, at, offset):
        number = splat(builder, load(builder, F32, address))
        for factor in factors:
            before = builder.extract_value(tile.value, len(results))
            results.append(of_llvm(builder, FMA, number, factor, before))
    return gather(builder, results)


def behind(builder: Builder, at: Places, offset: Value) -> list[Value]:
    """Move addresses ``offset`` bytes on."""
    return [builder.add(builder.extract_value(at.value, i), offset) for i in range(at.kind.count)]


def add_words(
    builder: Builder,
    tile: Vectors,
    at: Places,
    offset: Value,
    weights: Value,
    add: Callable[[Builder, Value, Value, Value], Value],
) -> Value:
    """Replace each pixel's row of a tile by the result of ``add`` for the sum so far, the pixel's
    own four bytes, ``offset`` bytes behind its address, and each vector of the four bytes of 16
    outputs at ``weights``.
    """
    vectors = tile.kind.shape[1]
    factors = [load(builder, INTS, weights, 4 * LANES * v) for v in range(vectors)]
    sums: list[Value] = []
    for address in behind(builder, at, offset):
        word = splat(builder, load(builder, I32, address, align=1))
        for factor in factors:
            before = builder.extract_value(tile.value, len(sums))
            sums.append(add(builder, before, word, factor))
    return gather(builder, sums)


@emits
def add_weighted(
    builder: Builder, tile: Vectors, at: Places, offset: Int64, weights: Address
) -> Same:
    """Add to each pixel's row the floats [vectors] at ``weights`` times the pixel's own as many
    floats, ``offset`` bytes behind its address.
    """
    vectors = tile.kind.shape[1]
    places = behind(builder, at, offset)
    results = []
    for i in range(tile.kind.count):
        own = load(builder, FLOATS, places[i // vectors], 4 * LANES * (i % vectors))
        factor = load(builder, FLOATS, weights, 4 * LANES * (i % vectors))
        before = builder.extract_value(tile.value, i)
        results.append(of_llvm(builder, FMA, own, factor, before))
    return gather(builder, results)


@emits
def add_weighted_first(
    builder: Builder, tile: Vectors, at: Places, offset: Int64, weights: Address, count: Int64
) -> Same:
    """Add as ``add_weighted`` does where only the first ``count`` floats of a row are there."""
    vectors = tile.kind.shape[1]
    inside = [lanes_before(builder, count, LANES * v) for v in range(vectors)]
    places, zeros = behind(builder, at, offset), ir.Constant(FLOATS, None)
    results = []
    for i in range(tile.kind.count):
        v = i % vectors
        own = load_first(builder, places[i // vectors], 4 * LANES * v, inside[v], zeros)
        factor = load(builder, FLOATS, weights, 4 * LANES * v)
        before = builder.extract_value(tile.value, i)
        results.append(of_llvm(builder, FMA, own, factor, before))
    return gather(builder, results)


@emits
def write_at(
    builder: Builder, tile: Vectors, low: Float32, high: Float32, at: Places, count: Int64
) -> None:
    """Write each pixel's row, cut off at two limits, to its address: its first ``count`` floats
    where there are more.
    """
    vectors = tile.kind.shape[1]
    low, high = splat(builder, low), splat(builder, high)
    results = [
        between(builder, builder.extract_value(tile.value, i), low, high)
        for i in range(tile.kind.count)
    ]
    starts = [builder.extract_value(at.value, p) for p in range(tile.kind.shape[0])]
    store_rows(builder, results, starts, vectors, count)
