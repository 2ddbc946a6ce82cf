"""Sums of products for pixels that lie anywhere: tiles [pixels, vectors of outputs] of floats, and
the pixels' addresses beside them in registers.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.extending import models, register_model

from luciole.kernels.jit.masked import lanes_before, load_first
from luciole.kernels.jit.results import between, store_rows
from luciole.kernels.jit.scalars import I64, intrinsic, literal_intrinsic, types
from luciole.kernels.jit.vectors import (
    F32,
    FLOATS,
    FMA,
    I32,
    LANES,
    Tile,
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
    def __init__(self, manager: Any, addresses: Addresses) -> None:
        super().__init__(manager, addresses, ir.ArrayType(I64, addresses.count))


@literal_intrinsic
def pixels(context: Any, count: Any, base: Any, table: Any, unit: Any) -> Any:
    """Addresses of ``count`` (known when a kernel is compiled) pixels, by int32 distances from
    ``base`` in units of so many bytes that stand at ``table``.
    """
    if not isinstance(count, types.IntegerLiteral):
        return None
    result = Addresses(count.literal_value)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _, base, table, unit = args
        found = ir.Constant(ir.ArrayType(I64, result.count), ir.Undefined)
        for i in range(result.count):
            distance = builder.sext(load(builder, I32, table, 4 * i), I64)
            address = builder.add(base, builder.mul(distance, unit))
            found = builder.insert_value(found, address, i)
        return found

    return result(count, types.int64, types.int64, types.int64), generate


@literal_intrinsic
def side_by_side(context: Any, count: Any, at: Any, step: Any) -> Any:
    """Addresses of ``count`` (known when a kernel is compiled) pixels from the first one of ``at``
    on, ``step`` bytes from one to the next.
    """
    if not isinstance(count, types.IntegerLiteral):
        return None
    result = Addresses(count.literal_value)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        found = ir.Constant(ir.ArrayType(I64, result.count), ir.Undefined)
        places = addresses(builder, builder.extract_value(args[1], 0), args[2], result.count)
        for i, place in enumerate(places):
            found = builder.insert_value(found, place, i)
        return found

    return result(count, at, types.int64), generate


def repeated(element: Any, kind: Any, pixels: Any, vectors: Any) -> Any:
    """What makes a tile [pixels, vectors] (known when a kernel is compiled) of an element type,
    whose rows all stand at one address: an intrinsic's signature and its code.
    """
    if not all(isinstance(n, types.IntegerLiteral) for n in (pixels, vectors)):
        return None
    tile = Tile(element, pixels.literal_value, vectors.literal_value)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        row = [load(builder, kind, args[2], 4 * LANES * v) for v in range(tile.shape[1])]
        return gather(builder, row * tile.shape[0])

    return tile(pixels, vectors, types.int64), generate


@literal_intrinsic
def rows_of(context: Any, pixels: Any, vectors: Any, start: Any) -> Any:
    """A tile [pixels, vectors] whose rows are all the floats at ``start``."""
    return repeated(types.float32, FLOATS, pixels, vectors)


@intrinsic
def add_scaled(typing_context: Any, tile: Any, at: Any, offset: Any, weights: Any) -> Any:
    """Add to each pixel's row the floats [vectors] at ``weights`` times the pixel's own float,
    ``offset`` bytes behind its address.
    """
    vectors = tile.shape[1]

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        tile_value, at, offset, weights = args
        factors = [load(builder, FLOATS, weights, 4 * LANES * v) for v in range(vectors)]
        results: list[Any] = []
        for address in behind(builder, at, offset):
            number = splat(builder, load(builder, F32, address))
            for factor in factors:
                before = builder.extract_value(tile_value, len(results))
                results.append(of_llvm(builder, FMA, number, factor, before))
        return gather(builder, results)

    return tile(tile, at, types.int64, types.int64), generate


def behind(builder: Any, at: Any, offset: Any) -> list[Any]:
    """Addresses, ``offset`` bytes on."""
    return [builder.add(builder.extract_value(at, i), offset) for i in range(at.type.count)]


@intrinsic
def add_weighted(typing_context: Any, tile: Any, at: Any, offset: Any, weights: Any) -> Any:
    """Add to each pixel's row the floats [vectors] at ``weights`` times the pixel's own as many
    floats, ``offset`` bytes behind its address.
    """
    vectors = tile.shape[1]

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        tile_value, at, offset, weights = args
        places = behind(builder, at, offset)
        results = []
        for i in range(tile.count):
            own = load(builder, FLOATS, places[i // vectors], 4 * LANES * (i % vectors))
            factor = load(builder, FLOATS, weights, 4 * LANES * (i % vectors))
            before = builder.extract_value(tile_value, i)
            results.append(of_llvm(builder, FMA, own, factor, before))
        return gather(builder, results)

    return tile(tile, at, types.int64, types.int64), generate


@intrinsic
def add_weighted_first(
    typing_context: Any, tile: Any, at: Any, offset: Any, weights: Any, count: Any
) -> Any:
    """``add_weighted`` where only the first ``count`` floats of a row are there."""
    vectors = tile.shape[1]

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        tile_value, at, offset, weights, count = args
        inside = [lanes_before(builder, count, LANES * v) for v in range(vectors)]
        places, zeros = behind(builder, at, offset), ir.Constant(FLOATS, None)
        results = []
        for i in range(tile.count):
            v = i % vectors
            own = load_first(builder, places[i // vectors], 4 * LANES * v, inside[v], zeros)
            factor = load(builder, FLOATS, weights, 4 * LANES * v)
            before = builder.extract_value(tile_value, i)
            results.append(of_llvm(builder, FMA, own, factor, before))
        return gather(builder, results)

    return tile(tile, at, types.int64, types.int64, types.int64), generate


@intrinsic
def write_at(typing_context: Any, tile: Any, low: Any, high: Any, at: Any, count: Any) -> Any:
    """Write each pixel's row, cut off at two limits, to its address: its first ``count`` floats
    where there are more.
    """
    vectors = tile.shape[1]

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value, low, high, at, count = args
        low, high = splat(builder, low), splat(builder, high)
        results = [
            between(builder, builder.extract_value(value, i), low, high) for i in range(tile.count)
        ]
        starts = [builder.extract_value(at, p) for p in range(tile.shape[0])]
        store_rows(builder, results, starts, vectors, count)
        return context.get_dummy_value()

    return types.void(tile, types.float32, types.float32, at, types.int64), generate
