"""Sums of products of 8 bit integers in vector registers: four products for each lane at a time.

Inputs are unsigned bytes (an integer q from -128 to 127 as q + 128), weights signed ones, and sums
int32. What the 128, or a zero point, adds up to is taken off where sums begin: -128 times the sum
of an output's weights.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from luciole.kernels.jit.masked import lanes_before, load_first_bytes, store_first_bytes
from luciole.kernels.jit.pixels import behind, repeated
from luciole.kernels.jit.processor import features
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
    wide_splat,
)


@literal_intrinsic
def integer_rows(context: Any, pixels: Any, vectors: Any, start: Any) -> Any:
    """A tile [pixels, vectors] whose rows are all the int32 numbers at ``start``."""
    return repeated(types.int32, INTS, pixels, vectors)


@intrinsic
def add_dots(typing_context: Any, tile: Any, at: Any, offset: Any, weights: Any) -> Any:
    """Add to each pixel's row the products of the pixel's own four bytes, ``offset`` bytes behind
    its address, with the bytes [vectors, 16, 4] at ``weights``.
    """
    vectors = tile.shape[1]
    add = _with_vnni if "avx512vnni" in features() else _with_products

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        tile_value, at, offset, weights = args
        factors = [load(builder, INTS, weights, 4 * LANES * v) for v in range(vectors)]
        sums: list[Any] = []
        for address in behind(builder, at, offset):
            four = splat(builder, load(builder, I32, address, align=1))
            for factor in factors:
                before = builder.extract_value(tile_value, len(sums))
                sums.append(add(builder, before, four, factor))
        return gather(builder, sums)

    return tile(tile, at, types.int64, types.int64), generate


@literal_intrinsic
def add_line_dots(
    typing_context: Any,
    tile: Any,
    at: Any,
    offset: Any,
    weights: Any,
    width: Any,
    stride: Any,
    depth: Any,
) -> Any:
    """Add to the rows of pixels side by side, which have 16 outputs, the products of four bytes of
    each tap of a line; an input is read once for all pixels that it belongs to.

    The first pixel's first tap is ``offset`` bytes behind its address, taps are ``depth`` bytes
    apart; weights are [taps, steps of four bytes, 16, 4], and only the first step counts. ``width``
    taps, the pixels' ``stride`` in taps and ``depth`` are known when a kernel is compiled.
    """
    if not all(isinstance(n, types.IntegerLiteral) for n in (width, stride, depth)):
        return None
    add = _with_vnni if "avx512vnni" in features() else _with_products
    taps, step, far = (n.literal_value for n in (width, stride, depth))

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        between = 4 * LANES * -(-far // 4)
        factors = [load(builder, INTS, args[3], between * tap) for tap in range(taps)]
        sums = [builder.extract_value(args[0], p) for p in range(tile.count)]
        start = behind(builder, args[1], args[2])[0]
        for place in range((tile.count - 1) * step + taps):
            four = splat(builder, load(builder, I32, start, far * place, align=1))
            for tap, factor in enumerate(factors):
                pixel, rest = divmod(place - tap, step)
                if not rest and 0 <= pixel < tile.count:
                    sums[pixel] = add(builder, sums[pixel], four, factor)
        return gather(builder, sums)

    return tile(tile, at, types.int64, types.int64, width, stride, depth), generate


def _with_vnni(builder: Any, sums: Any, unsigned: Any, signed: Any) -> Any:
    return of_llvm(builder, "llvm.x86.avx512.vpdpbusd.512", sums, unsigned, signed)


def _with_products(builder: Any, sums: Any, unsigned: Any, signed: Any) -> Any:
    """The same in plain LLVM, which multiplies 16 bits where it sees that they are enough."""
    for byte in range(4):
        down, up = (ir.Constant(INTS, [bits] * LANES) for bits in (8 * byte, 24 - 8 * byte))
        low, rest = (ir.Constant(INTS, [number] * LANES) for number in (255, 24))
        x = builder.and_(builder.lshr(unsigned, down), low)
        w = builder.ashr(builder.shl(signed, up), rest)
        sums = builder.add(sums, builder.mul(x, w))
    return sums


@intrinsic
def add_taps(
    typing_context: Any, tile: Any, at: Any, offsets: Any, count: Any, weights: Any
) -> Any:
    """Add to rows of 64 channels the products of ``count`` (1 to 4, known when a kernel is
    compiled) taps: bytes at int32 distances, at ``offsets``, from each row's address, times the
    bytes [4, 16, 4] at ``weights``. A row with four addresses has 16 channels from each.

    Vector v of a row holds channels 4 v to 4 v + 3, then those and 16, and so on: bytes of four
    taps come together within each 128 bits.
    """
    if not isinstance(count, types.IntegerLiteral):
        return None
    add = _with_vnni if "avx512vnni" in features() else _with_products
    rows, taps = tile.shape[0], count.literal_value

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        tile_value, at, offsets, _, weights = args
        factors = [load(builder, INTS, weights, 4 * LANES * v) for v in range(4)]
        moves = [builder.sext(load(builder, I32, offsets, 4 * k), I64) for k in range(taps)]
        places = [behind(builder, at, move) for move in moves]
        pieces = at.type.count // rows
        sums: list[Any] = []
        for row in range(rows):
            given = [
                _sixty_four(builder, found[pieces * row : pieces * (row + 1)]) for found in places
            ]
            given += [ir.Constant(given[0].type, None)] * (4 - taps)
            for four, factor in zip(together(builder, given), factors, strict=True):
                before = builder.extract_value(tile_value, len(sums))
                sums.append(add(builder, before, four, factor))
        return gather(builder, sums)

    return tile(tile, at, types.int64, count, types.int64), generate


def _sixty_four(builder: Any, addresses: list[Any]) -> Any:
    """64 bytes from one address, or 16 from each of four."""
    kind = ir.VectorType(ir.IntType(8), 4 * LANES // len(addresses))
    parts = [load(builder, kind, address, align=1) for address in addresses]
    while len(parts) > 1:
        order = list(range(2 * parts[0].type.count))
        parts = [
            wide_shuffle(builder, a, b, order) for a, b in zip(parts[::2], parts[1::2], strict=True)
        ]
    return parts[0]


def together(builder: Any, taps: list[Any]) -> list[Any]:
    """Four vectors of 64 bytes as four of 16 int32 whose bytes are of one channel each."""
    a, b, c, d = taps
    first, second = (_interleaved(builder, *pair, ir.IntType(16)) for pair in ((a, b), (c, d)))
    found = []
    for a, b in zip(first, second, strict=True):
        found += _interleaved(builder, a, b, I32)
    return found


def _interleaved(builder: Any, a: Any, b: Any, wider: Any) -> list[Any]:
    """Elements of two vectors in turn, as integers of twice their size: those of the lower half of
    each 128 bits, and those of the upper one.
    """
    count = a.type.count
    part = count // 4
    found = []
    for half in (0, 1):
        first = [quarter * part + half * part // 2 for quarter in range(4)]
        order = [f + i + source for f in first for i in range(part // 2) for source in (0, count)]
        turn = wide_shuffle(builder, a, b, order)
        found.append(builder.bitcast(turn, ir.VectorType(wider, count // 2)))
    return found


@intrinsic
def scaled(typing_context: Any, tile: Any, factor: Any, scales: Any, starts: Any) -> Any:
    """Sums as floats: sum * (factor * scale) + start, each rounded; ``scales`` and ``starts`` are
    addresses of floats [outputs].
    """
    rows = Tile(types.float32, *tile.shape)
    vectors = tile.shape[1]

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        tile_value, factor, scales, starts = args
        each = splat(builder, factor)
        own, begin = (
            [load(builder, FLOATS, place, 4 * LANES * v) for v in range(vectors)]
            for place in (scales, starts)
        )
        factors = [builder.fmul(each, scale) for scale in own]
        results = []
        for i in range(tile.count):
            number = builder.sitofp(builder.extract_value(tile_value, i), FLOATS)
            v = i % vectors
            results.append(builder.fadd(builder.fmul(number, factors[v]), begin[v]))
        return gather(builder, results)

    return rows(tile, types.float32, types.int64, types.int64), generate


@intrinsic
def turn_bytes(typing_context: Any, x: Any, to: Any, turned: Any, vectors: Any) -> Any:
    """Copy so many (known when a kernel is compiled) times 16 bytes, some of their bits turned."""
    if not isinstance(vectors, types.IntegerLiteral):
        return None
    lanes = LANES * vectors.literal_value

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        x, to, turned, _ = args
        given = load(builder, ir.VectorType(BYTES.element, lanes), x, align=1)
        bits = wide_splat(builder, builder.trunc(turned, BYTES.element), lanes)
        store(builder, builder.xor(given, bits), to, align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64, vectors), generate


@intrinsic
def turn_first_bytes(typing_context: Any, x: Any, to: Any, turned: Any, count: Any) -> Any:
    """The same for at most 16 bytes."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        x, to, turned, count = args
        inside = lanes_before(builder, count, 0)
        bits = wide_splat(builder, builder.trunc(turned, BYTES.element), LANES)
        given = load_first_bytes(builder, x, inside)
        store_first_bytes(builder, builder.xor(given, bits), to, count)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64, types.int64), generate
