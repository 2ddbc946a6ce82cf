"""Floats in vector registers on grids with a zero point that is found when a kernel runs, and sums
of products on such grids as floats again.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils

from luciole.kernels.jit.masked import lanes_before, load_first, store_first, store_first_bytes
from luciole.kernels.jit.pixels import repeated
from luciole.kernels.jit.results import between
from luciole.kernels.jit.scalars import I64, intrinsic, literal_intrinsic, types
from luciole.kernels.jit.vectors import (
    BYTES,
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
"""What is added before the fraction is cut off, so that halves go up and what lies below them does
not; with 0.5 the float below goes up too, as its sum is rounded.
"""


@intrinsic
def raised_both(typing_context: Any, tile: Any, x: Any, count: Any) -> Any:
    """Two vectors of bit patterns, raised to those of ``count`` floats, at most 16, at ``x``: the
    numbers above 0, and the magnitudes of those below. As integers they rise with the magnitude,
    infinity and NaN highest.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        tile_value, x, count = args
        given = _first_floats(builder, x, count)
        bits = builder.bitcast(given, INTS)
        turned = builder.bitcast(builder.fneg(given), INTS)
        results = []
        for i, number in enumerate((bits, turned)):
            before = builder.extract_value(tile_value, i)
            more = builder.icmp_signed(">", number, before)
            results.append(builder.select(more, number, before))
        return gather(builder, results)

    return tile(tile, types.int64, types.int64), generate


@intrinsic
def larger_of_both(typing_context: Any, tile: Any, other: Any) -> Any:
    """The larger lanes of two such pairs of vectors."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        results = []
        for i in range(tile.count):
            a, b = (builder.extract_value(value, i) for value in args)
            results.append(builder.select(builder.icmp_signed(">", a, b), a, b))
        return gather(builder, results)

    return tile(tile, tile), generate


@literal_intrinsic
def highest(typing_context: Any, tile: Any, which: Any) -> Any:
    """The largest number of one vector (which is known when a kernel is compiled) of int32."""
    place = which.literal_value

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(I32, [INTS])
        name = f"llvm.vector.reduce.smax.v{LANES}i32"
        function = cgutils.get_or_insert_function(builder.module, kind, name)
        return builder.sext(builder.call(function, [builder.extract_value(args[0], place)]), I64)

    return types.int64(tile, which), generate


@literal_intrinsic
def write_on_grid(
    typing_context: Any, x: Any, count: Any, grid: Any, limits: Any, to: Any, room: Any
) -> Any:
    """Write ``count`` floats at ``x`` on a grid, plus 128, as bytes: x * grid[0] + grid[1], each
    rounded, then to the nearest integer as ``limits[0]``, 0.5 or ``BELOW_HALF``, decides, cut off
    at ``limits[1]`` and 127. Where there is ``room`` for more bytes (at most 16), they are
    anything.
    """
    whole = isinstance(room, types.IntegerLiteral) and room.literal_value == LANES

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        x, count, grid, limits, to, room = args
        inverse, point, half, low = (
            splat(builder, builder.extract_value(pair, i))
            for pair in (grid, limits)
            for i in (0, 1)
        )
        values = builder.fadd(builder.fmul(_first_floats(builder, x, count), inverse), point)
        values = builder.fadd(values, of_llvm(builder, "llvm.copysign.v16f32", half, values))
        high = ir.Constant(FLOATS, [127.0] * LANES)
        values = builder.select(builder.fcmp_ordered(">", values, low), values, low)
        values = builder.select(builder.fcmp_ordered("<", values, high), values, high)
        number = builder.add(builder.fptosi(values, INTS), ir.Constant(INTS, [128] * LANES))
        found = builder.trunc(number, BYTES)
        if whole:
            store(builder, found, to, align=1)
        else:
            store_first_bytes(builder, found, to, room)
        return context.get_dummy_value()

    pair = types.UniTuple(types.float32, 2)
    given = (types.int64, types.int64, pair, pair, types.int64, room if whole else types.int64)
    return types.void(*given), generate


def _first_floats(builder: Any, x: Any, count: Any) -> Any:
    """Floats of some lanes at an address, 0 in the rest."""
    inside = lanes_before(builder, count, 0)
    return load_first(builder, x, 0, inside, ir.Constant(FLOATS, None))


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
