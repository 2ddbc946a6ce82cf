"""Floats in vector registers on grids with a zero point that is found when a kernel runs, and sums
of products on such grids as floats again.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from luciole.kernels.jit.bytes import VECTOR
from luciole.kernels.jit.masked import lanes_before, load_first, store_first
from luciole.kernels.jit.pixels import repeated
from luciole.kernels.jit.results import between
from luciole.kernels.jit.scalars import intrinsic, literal_intrinsic, types
from luciole.kernels.jit.vectors import (
    FLOATS,
    I32,
    INTS,
    LANES,
    Tile,
    gather,
    load,
    of_llvm,
    splat,
    store,
    wide_shuffle,
)

BELOW_HALF = 0.5 - 2.0**-25
"""What is added before the fraction is cut off: halves go up, what lies below them does not."""


@intrinsic
def float_bits(typing_context: Any, x: Any, count: Any, turned: Any) -> Any:
    """The bit patterns of ``count`` floats, at most 16, at ``x``, some of their bits turned; as
    integers those of numbers above 0 rise with them, infinity and NaN highest.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        x, count, turned = args
        zeros = ir.Constant(FLOATS, None)
        given = load_first(builder, x, 0, lanes_before(builder, count, 0), zeros)
        bits = splat(builder, builder.trunc(turned, I32))
        return gather(builder, [builder.xor(builder.bitcast(given, INTS), bits)])

    return VECTOR(types.int64, types.int64, types.int64), generate


@intrinsic
def grid_bytes(typing_context: Any, x: Any, inverse: Any, point: Any, count: Any) -> Any:
    """``count`` floats, at most 16, at ``x`` on a grid, plus 128: x * inverse + point, each
    rounded, then to the nearest integer, halves away from zero, cut off at -128 and 127.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        x, inverse, point, count = args
        zeros = ir.Constant(FLOATS, None)
        given = load_first(builder, x, 0, lanes_before(builder, count, 0), zeros)
        values = builder.fmul(given, splat(builder, inverse))
        values = builder.fadd(values, splat(builder, point))
        half = ir.Constant(FLOATS, [BELOW_HALF] * LANES)
        values = builder.fadd(values, of_llvm(builder, "llvm.copysign.v16f32", half, values))
        low, high = (ir.Constant(FLOATS, [limit] * LANES) for limit in (-128.0, 127.0))
        values = builder.select(builder.fcmp_ordered(">", values, low), values, low)
        values = builder.select(builder.fcmp_ordered("<", values, high), values, high)
        number = builder.add(builder.fptosi(values, INTS), ir.Constant(INTS, [128] * LANES))
        return gather(builder, [number])

    return VECTOR(types.int64, types.float32, types.float32, types.int64), generate


@literal_intrinsic
def integer_multiples(context: Any, pixels: Any, vectors: Any, start: Any, factor: Any) -> Any:
    """A tile [pixels, vectors] whose rows are all the int32 numbers at ``start`` times a number."""
    found = repeated(types.int32, INTS, pixels, vectors)
    if found is None:
        return None
    tile = found[0].return_type

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        each = splat(builder, builder.trunc(args[3], I32))
        row = [
            builder.mul(load(builder, INTS, args[2], 4 * LANES * v), each)
            for v in range(tile.shape[1])
        ]
        return gather(builder, row * tile.shape[0])

    return tile(pixels, vectors, types.int64, types.int64), generate


@intrinsic
def scaled_in_turn(typing_context: Any, tile: Any, factor: Any, scales: Any, starts: Any) -> Any:
    """Sums as floats: sum * scale * factor + start, each rounded; ``scales`` and ``starts`` are
    addresses of floats [outputs].
    """
    rows = Tile(types.float32, *tile.shape)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        tile_value, factor, scales, starts = args
        each = splat(builder, factor)
        results = []
        for i in range(tile.count):
            own, begin = (
                load(builder, FLOATS, place, 4 * LANES * (i % tile.shape[1]))
                for place in (scales, starts)
            )
            number = builder.sitofp(builder.extract_value(tile_value, i), FLOATS)
            product = builder.fmul(builder.fmul(number, own), each)
            results.append(builder.fadd(product, begin))
        return gather(builder, results)

    return rows(tile, types.float32, types.int64, types.int64), generate


@intrinsic
def write_channels_at(
    typing_context: Any, tile: Any, low: Any, high: Any, at: Any, count: Any
) -> Any:
    """Write rows of 64 floats, whose vectors are in the order of ``dots.add_taps``, cut off at two
    limits: whole where there is one address for each, else in pieces of 16, the first ``count`` of
    each.
    """
    rows = tile.shape[0]

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value, low, high, at, count = args
        low, high = splat(builder, low), splat(builder, high)
        given = [
            between(builder, builder.extract_value(value, i), low, high) for i in range(tile.count)
        ]
        results = [
            v for row in range(rows) for v in _in_order(builder, given[4 * row : 4 * row + 4])
        ]
        if at.type.count == rows:
            for i, result in enumerate(results):
                store(builder, result, builder.extract_value(at, i // 4), 4 * LANES * (i % 4))
            return context.get_dummy_value()
        inside = lanes_before(builder, count, 0)
        for i, result in enumerate(results):
            store_first(builder, result, builder.extract_value(at, i), 0, inside)
        return context.get_dummy_value()

    return types.void(tile, types.float32, types.float32, at, types.int64), generate


def _in_order(builder: Any, four: list[Any]) -> list[Any]:
    """Four vectors of 4 x 4 elements with those blocks exchanged beside the diagonal."""
    a, b, c, d = four
    halves = [
        [lane for block in blocks for lane in range(4 * block, 4 * block + 4)]
        for blocks in ((0, 4, 1, 5), (2, 6, 3, 7))
    ]
    found = []
    for half in halves:
        first, second = (wide_shuffle(builder, *pair, half) for pair in ((a, b), (c, d)))
        for start in (0, 8):
            order = [*range(start, start + 8), *range(16 + start, 24 + start)]
            found.append(wide_shuffle(builder, first, second, order))
    return found
