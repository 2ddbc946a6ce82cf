"""Sums of products of 8 bit integers in vector registers: four products for each lane at a time.

Inputs are unsigned bytes (an integer q from -128 to 127 as q + 128), weights signed ones, and sums
int32. What the 128, or a zero point, adds up to is taken off where sums begin: -128 times the sum
of an output's weights.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir
from numba.core import cgutils

from luciole.kernels.jit.emits import (
    Address,
    Builder,
    Float32,
    Form,
    Int64,
    Literal,
    Value,
    emits,
)
from luciole.kernels.jit.processor import adds_four_products, has
from luciole.kernels.jit.scalars import I64
from luciole.kernels.jit.vector.masked import lanes_before, load_first_bytes, store_first_bytes
from luciole.kernels.jit.vector.pixels import Places, add_words, behind, repeated
from luciole.kernels.jit.vector.shorts import with_pairs, with_vnni
from luciole.kernels.jit.vector.vectors import (
    BYTES,
    FLOATS,
    I32,
    INTS,
    LANES,
    SHORT_PAIRS,
    FloatsLike,
    Ints,
    Same,
    Vectors,
    by_halves,
    gather,
    load,
    splat,
    store,
    wide_shuffle,
    wide_splat,
)


@emits
def integer_rows(builder: Builder, pixels: Literal, vectors: Literal, start: Address) -> Ints:
    """Make a tile [pixels, vectors] whose rows are all the int32 numbers at ``start``."""
    return repeated(builder, INTS, pixels, vectors, start)


@emits
def add_dots(builder: Builder, tile: Vectors, at: Places, offset: Int64, weights: Address) -> Same:
    """Add to each pixel's row the products of the pixel's own four bytes, ``offset`` bytes behind
    its address, with the bytes [vectors, 16, 4] at ``weights``.
    """
    return add_words(builder, tile, at, offset, weights, _adding())


@emits
def write_vectors(builder: Builder, tile: Vectors, to: Address) -> None:
    """Write all vectors of a tile, one behind the other."""
    for i in range(tile.kind.count):
        store(builder, builder.extract_value(tile.value, i), to, 4 * LANES * i)


@emits
def less_products(
    builder: Builder, tile: Vectors, pixels: Literal, vectors: Literal, factors: Address
) -> Ints:
    """Subtract from the vectors of each row [vectors + 1] the last one, times the ``factors`` of
    each, and leave it out.
    """
    times = [load(builder, INTS, factors, 4 * LANES * v) for v in range(vectors)]
    sums: list[Value] = []
    for first in range(0, tile.kind.count, vectors + 1):
        *row, last = (builder.extract_value(tile.value, first + v) for v in range(vectors + 1))
        products = (builder.mul(last, factor) for factor in times)
        sums += [builder.sub(own, less) for own, less in zip(row, products, strict=True)]
    return gather(builder, sums)


@emits
def add_line_dots(
    builder: Builder,
    tile: Vectors,
    at: Places,
    offset: Int64,
    weights: Address,
    width: Literal,
    stride: Literal,
    depth: Literal,
) -> Same:
    """Add to the rows of pixels side by side, which have 16 outputs, the products of four bytes of
    each tap of a line; an input is read once for all pixels that it belongs to.

    The first pixel's first tap is ``offset`` bytes behind its address, taps are ``depth`` bytes
    apart; weights are [taps, steps of four bytes, 16, 4], and only the first step counts. ``width``
    taps, the pixels' ``stride`` in taps and ``depth`` are known when a kernel is compiled.
    """
    add = _adding()
    between = 4 * LANES * -(-depth // 4)
    factors = [load(builder, INTS, weights, between * tap) for tap in range(width)]
    sums = [builder.extract_value(tile.value, p) for p in range(tile.kind.count)]
    start = behind(builder, at, offset)[0]
    for place in range((tile.kind.count - 1) * stride + width):
        four = splat(builder, load(builder, I32, start, depth * place, align=1))
        for tap, factor in enumerate(factors):
            pixel, rest = divmod(place - tap, stride)
            if not rest and 0 <= pixel < tile.kind.count:
                sums[pixel] = add(builder, sums[pixel], four, factor)
    return gather(builder, sums)


PAIRS = has("avx2") and not adds_four_products()
"""Whether products are added in pairs, of which 16 bit weights are made on the way."""

PAIRED_VECTORS = 5
"""Sums in a tile then, so that halves of inputs and weights stay in registers beside them."""


def centres(count: int) -> bool:
    """Return whether kernels subtract ``count`` numbers that weights have in common on the way."""
    return PAIRS and count == 1


@emits
def add_centred_dots(
    builder: Builder, tile: Vectors, at: Places, offset: Int64, weights: Address, zero: Int64
) -> Same:
    """Add products as ``add_dots`` does with weights less a number. Only where ``PAIRS``."""
    if not PAIRS:
        return tile.value
    less = wide_splat(builder, builder.trunc(zero, SHORT_PAIRS.element), 2 * LANES)
    factors = [load(builder, INTS, weights, 4 * LANES * v) for v in range(tile.kind.shape[1])]
    sums: list[Value] = []
    for address in behind(builder, at, offset):
        four = splat(builder, load(builder, I32, address, align=1))
        for factor in factors:
            before = builder.extract_value(tile.value, len(sums))
            sums.append(_with_pairs(builder, before, four, factor, less))
    return gather(builder, sums)


def _adding() -> Callable[[Builder, Value, Value, Value], Value]:
    """Return the function that adds four products to each lane on this machine."""
    if adds_four_products():
        return _with_vnni
    if has("i8mm"):
        return _with_usdot
    if has("dotprod"):
        return _with_sdot
    return _with_pairs if PAIRS else _with_products


def _with_vnni(builder: Builder, sums: Value, unsigned: Value, signed: Value) -> Value:
    """Add to sums of int32 four products in each lane: ``vpdpbusd``."""
    return with_vnni(builder, "vpdpbusd", sums, unsigned, signed)


def _with_usdot(builder: Builder, sums: Value, unsigned: Value, signed: Value) -> Value:
    """Add products of four bytes to each lane: ``usdot`` of Arm's processors with I8MM."""
    return _by_quarters(builder, "usdot", sums, unsigned, signed)


def _with_sdot(builder: Builder, sums: Value, unsigned: Value, signed: Value) -> Value:
    """Add products of four bytes to each lane by ``sdot``, which takes signed bytes: inputs less
    128, and twice 64 times each weight. LLVM writes the latter once for all sums that a weight
    counts in.
    """
    turned = builder.xor(unsigned, ir.Constant(INTS, [-0x7F7F7F80] * LANES))
    half, share = ir.Constant(INTS, [0x40404040] * LANES), ir.Constant(INTS, None)
    for _ in range(2):
        share = _by_quarters(builder, "sdot", share, signed, half)
    return _by_quarters(builder, "sdot", builder.add(sums, share), turned, signed)


def _by_quarters(builder: Builder, name: str, sums: Value, a: Value, b: Value) -> Value:
    """Call an instruction of Neon for each 128 bits."""
    four, sixteen = ir.VectorType(I32, 4), ir.VectorType(BYTES.element, 16)
    kind = ir.FunctionType(four, [four, sixteen, sixteen])
    function = cgutils.get_or_insert_function(
        builder.module, kind, f"llvm.aarch64.neon.{name}.v4i32.v16i8"
    )
    results = []
    for first in range(0, LANES, 4):
        own, *factors = (wide_shuffle(builder, v, v, range(first, first + 4)) for v in (sums, a, b))
        results.append(
            builder.call(function, [own, *(builder.bitcast(v, sixteen) for v in factors)])
        )
    p, q, r, s = results
    lower, upper = (wide_shuffle(builder, x, y, range(8)) for x, y in ((p, q), (r, s)))
    return wide_shuffle(builder, lower, upper, range(LANES))


def _with_pairs(
    builder: Builder, sums: Value, unsigned: Value, signed: Value, less: Value | None = None
) -> Value:
    """Add products of four bytes to each lane, or with weights less a number, as two pairs, bytes 0
    and 2, and 1 and 3, of each lane: ``vpmaddwd``. Products of bytes that ``vpmaddubsw`` pairs may
    not fit into its 16 bits.

    LLVM writes the halves of an input or a weight once for all sums that they count in.
    """
    eight, low = (ir.Constant(SHORT_PAIRS, [number] * (2 * LANES)) for number in (8, 255))
    x, w = (builder.bitcast(value, SHORT_PAIRS) for value in (unsigned, signed))
    inputs = builder.and_(x, low), builder.lshr(x, eight)
    weights = builder.ashr(builder.shl(w, eight), eight), builder.ashr(w, eight)
    for number, weight in zip(inputs, weights, strict=True):
        factor = weight if less is None else builder.sub(weight, less)
        sums = builder.add(sums, by_halves(builder, "pmadd.wd", INTS, number, factor))
    return sums


def _with_products(builder: Builder, sums: Value, unsigned: Value, signed: Value) -> Value:
    """Add products of four bytes to each lane in plain LLVM, which multiplies 16 bits where it sees
    that they are enough.
    """
    for byte in range(4):
        down, up = (ir.Constant(INTS, [bits] * LANES) for bits in (8 * byte, 24 - 8 * byte))
        low, rest = (ir.Constant(INTS, [number] * LANES) for number in (255, 24))
        x = builder.and_(builder.lshr(unsigned, down), low)
        w = builder.ashr(builder.shl(signed, up), rest)
        sums = builder.add(sums, builder.mul(x, w))
    return sums


@emits
def add_taps(
    builder: Builder, tile: Vectors, at: Places, offsets: Address, count: Literal, weights: Address
) -> Same:
    """Add to rows of 64 channels the products of ``count`` (1 to 4, known when a kernel is
    compiled) taps: bytes at int32 distances, at ``offsets``, from each row's address, times the
    bytes [4, 16, 4] at ``weights``. A row with four addresses has 16 channels from each.

    Vector v of a row holds channels 4 v to 4 v + 3, then those and 16, and so on: bytes of four
    taps come together within each 128 bits. Rows of two vectors are of 32 int16, two taps of which
    come together.
    """
    rows, vectors, taps = *tile.kind.shape, count
    of_bytes = _adding()
    add = of_bytes if vectors == 4 else with_pairs
    factors = [load(builder, INTS, weights, 4 * LANES * v) for v in range(vectors)]
    moves = [builder.sext(load(builder, I32, offsets, 4 * k), I64) for k in range(taps)]
    places = [behind(builder, at, move) for move in moves]
    pieces = at.kind.count // rows
    sums: list[Value] = []
    for row in range(rows):
        taps_of_row = [
            _sixty_four(builder, tap[pieces * row : pieces * (row + 1)]) for tap in places
        ]
        taps_of_row += [ir.Constant(taps_of_row[0].type, None)] * (vectors - taps)
        for four, factor in zip(together(builder, taps_of_row), factors, strict=True):
            before = builder.extract_value(tile.value, len(sums))
            sums.append(add(builder, before, four, factor))
    return gather(builder, sums)


def _sixty_four(builder: Builder, addresses: list[Value]) -> Value:
    """Load 64 bytes from one address, or 16 from each of four."""
    kind = ir.VectorType(ir.IntType(8), 4 * LANES // len(addresses))
    parts = [load(builder, kind, address, align=1) for address in addresses]
    while len(parts) > 1:
        order = list(range(2 * parts[0].type.count))
        parts = [
            wide_shuffle(builder, a, b, order) for a, b in zip(parts[::2], parts[1::2], strict=True)
        ]
    return parts[0]


def together(builder: Builder, taps: list[Value]) -> list[Value]:
    """Transpose four vectors of 64 bytes to four of 16 int32 whose bytes are of one channel each;
    or two of 32 int16 to two of as many.
    """
    if len(taps) == 2:
        a, b = (builder.bitcast(tap, ir.VectorType(ir.IntType(16), 2 * LANES)) for tap in taps)
        return _interleaved(builder, a, b, I32)
    a, b, c, d = taps
    first, second = (_interleaved(builder, *pair, ir.IntType(16)) for pair in ((a, b), (c, d)))
    transposed = []
    for a, b in zip(first, second, strict=True):
        transposed += _interleaved(builder, a, b, I32)
    return transposed


def _interleaved(builder: Builder, a: Value, b: Value, wider: Form) -> list[Value]:
    """Interleave two vectors as integers of twice the size: first the lower half of each 128 bits,
    then the upper one.
    """
    count = a.type.count
    part = count // 4
    halves = []
    for half in (0, 1):
        first = [quarter * part + half * part // 2 for quarter in range(4)]
        order = [f + i + source for f in first for i in range(part // 2) for source in (0, count)]
        turn = wide_shuffle(builder, a, b, order)
        halves.append(builder.bitcast(turn, ir.VectorType(wider, count // 2)))
    return halves


@emits
def scaled(
    builder: Builder, tile: Vectors, factor: Float32, scales: Address, starts: Address
) -> FloatsLike:
    """Convert sums to floats: sum * (factor * scale) + start, each rounded; ``scales`` and
    ``starts`` are addresses of floats [outputs].
    """
    vectors = tile.kind.shape[1]
    each = splat(builder, factor)
    own, begin = (
        [load(builder, FLOATS, place, 4 * LANES * v) for v in range(vectors)]
        for place in (scales, starts)
    )
    factors = [builder.fmul(each, scale) for scale in own]
    results = []
    for i in range(tile.kind.count):
        number = builder.sitofp(builder.extract_value(tile.value, i), FLOATS)
        v = i % vectors
        results.append(builder.fadd(builder.fmul(number, factors[v]), begin[v]))
    return gather(builder, results)


@emits
def turn_bytes(builder: Builder, x: Address, to: Address, turned: Int64, vectors: Literal) -> None:
    """Copy ``vectors`` (known when a kernel is compiled) times 16 bytes, some of their bits
    turned.
    """
    lanes = LANES * vectors
    octets = load(builder, ir.VectorType(BYTES.element, lanes), x, align=1)
    bits = wide_splat(builder, builder.trunc(turned, BYTES.element), lanes)
    store(builder, builder.xor(octets, bits), to, align=1)


@emits
def turn_first_bytes(
    builder: Builder, x: Address, to: Address, turned: Int64, count: Int64
) -> None:
    """Copy at most 16 bytes, some of their bits flipped."""
    inside = lanes_before(builder, count, 0)
    bits = wide_splat(builder, builder.trunc(turned, BYTES.element), LANES)
    octets = load_first_bytes(builder, x, inside)
    store_first_bytes(builder, builder.xor(octets, bits), to, count)
