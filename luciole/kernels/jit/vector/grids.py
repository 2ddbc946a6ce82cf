"""Floats in vector registers on grids with a zero point that is found when a kernel runs, and sums
of products on such grids as floats again.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from llvmlite import ir
from numba.core import cgutils

from luciole.kernels.jit.emits import (
    Address,
    Builder,
    Float32,
    Int64,
    Literal,
    Single,
    Value,
    emits,
    types,
)
from luciole.kernels.jit.scalars import I64
from luciole.kernels.jit.vector.masked import (
    lanes_before,
    load_first,
    store_first,
    store_first_bytes,
)
from luciole.kernels.jit.vector.pixels import Places
from luciole.kernels.jit.vector.results import between
from luciole.kernels.jit.vector.vectors import (
    BYTES,
    FLOATS,
    I32,
    INTS,
    LANES,
    FloatsLike,
    Ints,
    Same,
    Vectors,
    gather,
    load,
    of_llvm,
    splat,
    store,
    wide_shuffle,
)

Pair: TypeAlias = Annotated[tuple[Single, Single], types.UniTuple(types.float32, 2)]
"""Two floats."""


@emits
def raised_both(builder: Builder, tile: Vectors, x: Address, count: Int64) -> Same:
    """Raise two vectors of bit patterns to those of ``count`` floats, at most 16, at ``x``: the
    numbers above 0, and the magnitudes of those below. As integers they rise with the magnitude,
    infinity and NaN highest.
    """
    numbers = _first_floats(builder, x, count)
    bits = builder.bitcast(numbers, INTS)
    turned = builder.bitcast(builder.fneg(numbers), INTS)
    results = []
    for i, number in enumerate((bits, turned)):
        before = builder.extract_value(tile.value, i)
        larger = builder.icmp_signed(">", number, before)
        results.append(builder.select(larger, number, before))
    return gather(builder, results)


@emits
def larger_of_both(builder: Builder, tile: Vectors, other: Vectors) -> Same:
    """Select the larger lanes of two pairs of vectors."""
    results = []
    for i in range(tile.kind.count):
        a, b = (builder.extract_value(value, i) for value in (tile.value, other.value))
        results.append(builder.select(builder.icmp_signed(">", a, b), a, b))
    return gather(builder, results)


@emits
def highest(builder: Builder, tile: Vectors, which: Literal) -> Int64:
    """Find the largest int32 of one vector, whose number is known when a kernel is compiled."""
    kind = ir.FunctionType(I32, [INTS])
    name = f"llvm.vector.reduce.smax.v{LANES}i32"
    function = cgutils.get_or_insert_function(builder.module, kind, name)
    return builder.sext(builder.call(function, [builder.extract_value(tile.value, which)]), I64)


@emits
def write_on_grid(
    builder: Builder, x: Address, count: Int64, grid: Pair, limits: Pair, to: Address, room: Int64
) -> None:
    """Write ``count`` floats at ``x`` on a grid as bytes: the nearest integer to x * grid[0], cut
    off at both limits, plus grid[1]. Halves go away from zero, and so does the float below 0.5,
    because its sum with 0.5 is rounded. Where there is ``room`` for more bytes (at most 16), they
    are anything.
    """
    store_first_bytes(builder, _on_grid(builder, x, count, grid, limits), to, room)


@emits
def write_all_on_grid(
    builder: Builder, x: Address, count: Int64, grid: Pair, limits: Pair, to: Address
) -> None:
    """Write as ``write_on_grid`` does where there is room for 16 bytes."""
    store(builder, _on_grid(builder, x, count, grid, limits), to, align=1)


def _on_grid(builder: Builder, x: Value, count: Value, grid: Value, limits: Value) -> Value:
    """Compute the 16 bytes of ``write_on_grid``."""
    inverse, zero, low, high = (
        splat(builder, builder.extract_value(pair, i)) for pair in (grid, limits) for i in (0, 1)
    )
    values = builder.fmul(_first_floats(builder, x, count), inverse)
    half = ir.Constant(FLOATS, [0.5] * LANES)
    values = builder.fadd(values, of_llvm(builder, "llvm.copysign.v16f32", half, values))
    values = builder.select(builder.fcmp_ordered(">", values, low), values, low)
    values = builder.select(builder.fcmp_ordered("<", values, high), values, high)
    number = builder.add(builder.fptosi(values, INTS), builder.fptosi(zero, INTS))
    return builder.trunc(number, BYTES)


def _first_floats(builder: Builder, x: Value, count: Value) -> Value:
    """Load the floats of some lanes from an address, 0 in the rest."""
    inside = lanes_before(builder, count, 0)
    return load_first(builder, x, 0, inside, ir.Constant(FLOATS, None))


@emits
def integer_multiples(
    builder: Builder, pixels: Literal, vectors: Literal, start: Address, factor: Int64
) -> Ints:
    """Make a tile [pixels, vectors] whose rows are all the int32 numbers at ``start`` times a
    number.
    """
    each = splat(builder, builder.trunc(factor, I32))
    row = [builder.mul(load(builder, INTS, start, 4 * LANES * v), each) for v in range(vectors)]
    return gather(builder, row * pixels)


@emits
def scaled_in_turn(
    builder: Builder, tile: Vectors, factor: Float32, scales: Address, starts: Address
) -> FloatsLike:
    """Convert sums to floats: sum * scale * factor + start, each rounded; ``scales`` and ``starts``
    are addresses of floats [outputs].
    """
    each = splat(builder, factor)
    results = []
    for i in range(tile.kind.count):
        own, begin = (
            load(builder, FLOATS, place, 4 * LANES * (i % tile.kind.shape[1]))
            for place in (scales, starts)
        )
        number = builder.sitofp(builder.extract_value(tile.value, i), FLOATS)
        product = builder.fmul(builder.fmul(number, own), each)
        results.append(builder.fadd(product, begin))
    return gather(builder, results)


@emits
def write_channels_at(
    builder: Builder, tile: Vectors, low: Float32, high: Float32, at: Places, count: Int64
) -> None:
    """Write rows of 64 floats, whose vectors are in the order of ``dots.add_taps``, cut off at two
    limits: whole where there is one address for each, else in pieces of 16, the first ``count`` of
    each.
    """
    rows = tile.kind.shape[0]
    low, high = splat(builder, low), splat(builder, high)
    cut = [
        between(builder, builder.extract_value(tile.value, i), low, high)
        for i in range(tile.kind.count)
    ]
    results = [v for row in range(rows) for v in _in_order(builder, cut[4 * row : 4 * row + 4])]
    if at.kind.count == rows:
        for i, result in enumerate(results):
            store(builder, result, builder.extract_value(at.value, i // 4), 4 * LANES * (i % 4))
        return
    inside = lanes_before(builder, count, 0)
    for i, result in enumerate(results):
        store_first(builder, result, builder.extract_value(at.value, i), 0, inside)


def _in_order(builder: Builder, four: list[Value]) -> list[Value]:
    """Transpose four vectors as a matrix of 4 x 4 blocks of 4 elements."""
    a, b, c, d = four
    halves = [
        [lane for block in blocks for lane in range(4 * block, 4 * block + 4)]
        for blocks in ((0, 4, 1, 5), (2, 6, 3, 7))
    ]
    rows = []
    for half in halves:
        first, second = (wide_shuffle(builder, *pair, half) for pair in ((a, b), (c, d)))
        for start in (0, 8):
            order = [*range(start, start + 8), *range(16 + start, 24 + start)]
            rows.append(wide_shuffle(builder, first, second, order))
    return rows
