"""Sums of integers in vector registers as results of quantized layers: scaled, rounded, cut off and
written as bytes. Exactly what ``luciole.ir.analysis.fixed_point`` computes one by one.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir
from numba.core import cgutils

from luciole.kernels.jit.emits import Address, Builder, Form, Int64, Literal, Value, emits
from luciole.kernels.jit.processor import has
from luciole.kernels.jit.record import Record
from luciole.kernels.jit.scalars import I64
from luciole.kernels.jit.vector.masked import store_first_bytes
from luciole.kernels.jit.vector.pixels import Places
from luciole.kernels.jit.vector.vectors import (
    I32,
    INTS,
    LANES,
    Same,
    Vectors,
    by_halves,
    gather,
    load,
    of_llvm,
    store,
    wide_shuffle,
    wide_splat,
)

I8, I16 = ir.IntType(8), ir.IntType(16)
WIDE_BYTES = ir.VectorType(I8, 4 * LANES)
HALF = LANES // 2
LONGS = ir.VectorType(I64, HALF)
DOUBLES = ir.VectorType(ir.DoubleType(), HALF)
SHORT = ir.VectorType(I32, HALF)
"""Half a vector of int32."""

FIXED_BYTES = 20 * LANES
"""Bytes that ``rescaled`` reads for 16 outputs: int64 multipliers and addends of the even ones and
of the odd ones, then int32 shifts of all.
"""

LIFTED_BYTES = FIXED_BYTES + 8 * LANES
"""Bytes that ``rescaled`` reads where sums are lifted: FIXED_BYTES, then int32 shifts up of all,
and addends that come next.
"""

EXACT_BYTES = 8 * LANES
"""Bytes that ``scaled_exactly`` reads for 16 outputs: factors in double precision."""


@emits
def rescaled(builder: Builder, tile: Vectors, constants: Address, lifted: Literal) -> Same:
    """Scale sums, raised so that they have no sign, to steps of the result. Where ``lifted`` is 1
    some count a whole step or more: sums are shifted up and then raised.

    As a sum is without a sign, the upper half of its product with twice the multiplier, plus an
    addend, is what gemmlowp's SaturatingRoundingDoublingHighMul gives. Halves are then rounded away
    from zero, as its RoundingDivideByPOT does, down for negative sums: half of a step less 1 is
    part of the addend, and sums whose upper bit is set, which are those that are not negative where
    they are raised by 2^31, have the 1 more.
    """
    vectors = tile.kind.shape[-1]
    results = []
    for i in range(tile.kind.count):
        size = LIFTED_BYTES if lifted else FIXED_BYTES
        sums, offset = builder.extract_value(tile.value, i), size * (i % vectors)
        if lifted:
            sums = _lifted(builder, sums, constants, offset + FIXED_BYTES)
        upper = upper_halves(builder, sums, constants, offset)
        shift = load(builder, INTS, constants, offset + 16 * LANES)
        rounds_up = builder.lshr(sums, ir.Constant(INTS, [31] * LANES))
        results.append(builder.ashr(builder.add(upper, rounds_up), shift))
    return gather(builder, results)


def _lifted(builder: Builder, sums: Value, base: Value, offset: int) -> Value:
    """Shift sums up, and raise them so that they have no sign."""
    up, raised = (load(builder, INTS, base, offset + 4 * LANES * n) for n in (0, 1))
    return builder.add(builder.shl(sums, up), raised)


def upper_halves(builder: Builder, sums: Value, base: Value, offset: int) -> Value:
    """Compute the upper halves of products of 64 bits of sums without a sign: with int64
    multipliers, those of even lanes and those of odd ones, plus such addends behind them.
    """
    products = [builder.bitcast(v, INTS) for v in long_products(builder, sums, base, offset)]
    order = [2 * (lane // 2) + 1 + LANES * (lane % 2) for lane in range(LANES)]
    return wide_shuffle(builder, products[0], products[1], order)


def long_products(builder: Builder, sums: Value, base: Value, offset: int) -> list[Value]:
    """Compute these products, of even lanes and of odd ones."""
    low = ir.Constant(LONGS, [0xFFFFFFFF] * HALF)
    pairs = builder.bitcast(sums, LONGS)
    halves = (builder.and_(pairs, low), builder.lshr(pairs, ir.Constant(LONGS, [32] * HALF)))
    products = []
    for i, half in enumerate(halves):
        multiplier = load(builder, LONGS, base, offset + i * 4 * LANES)
        addend = load(builder, LONGS, base, offset + (2 + i) * 4 * LANES)
        product = builder.mul(half, builder.and_(multiplier, low))
        products.append(builder.add(product, addend))
    return products


@emits
def saturated_sums(builder: Builder, tile: Vectors, other: Vectors) -> Same:
    """Cut a tile off at the limits of 16 bits, add the other one, and cut off again."""
    most = 2**15 - 1
    results = []
    for i in range(tile.kind.count):
        x, y = (builder.extract_value(t.value, i) for t in (tile, other))
        # of what is beyond twice these limits, a sum is beyond them whatever the other number
        sums = builder.add(_cut(builder, x, most), _cut(builder, y, 4 * most))
        results.append(_cut(builder, sums, most))
    return gather(builder, results)


def _cut(builder: Builder, x: Value, most: int) -> Value:
    """Cut int32 off at -most - 1 and most."""
    low, high = (ir.Constant(INTS, [limit] * LANES) for limit in (-most - 1, most))
    x = of_llvm(builder, "llvm.smax.v16i32", x, low)
    return of_llvm(builder, "llvm.smin.v16i32", x, high)


@emits
def scaled_exactly(builder: Builder, tile: Vectors, factors: Address) -> Same:
    """Multiply sums by factors in double precision and round to integers, halves away from zero."""
    return exactly_rounded(builder, tile, factors)


def exactly_rounded(builder: Builder, tile: Vectors, factors: Value) -> Value:
    """Scale sums of int32 or of int64 to steps of the result in double precision, and round
    them.
    """
    vectors = tile.kind.shape[1]
    results = []
    for i in range(tile.kind.count):
        sums = builder.extract_value(tile.value, i)
        low, high = (_rounded_half(builder, sums, factors, i % vectors, n) for n in (0, 1))
        results.append(wide_shuffle(builder, low, high, list(range(LANES))))
    return gather(builder, results)


def _rounded_half(builder: Builder, sums: Value, factors: Value, vector: int, half: int) -> Value:
    """Scale 8 of 16 sums."""
    numbers = list(range(HALF * half, HALF * half + HALF))
    some = builder.shuffle_vector(sums, sums, ir.Constant(SHORT, numbers))
    factor = load(builder, DOUBLES, factors, EXACT_BYTES * vector + 8 * HALF * half)
    steps = builder.fmul(builder.sitofp(some, DOUBLES), factor)
    whole = of_llvm(builder, "llvm.trunc.v8f64", steps)
    rest = of_llvm(builder, "llvm.fabs.v8f64", builder.fsub(steps, whole))
    one = of_llvm(builder, "llvm.copysign.v8f64", ir.Constant(DOUBLES, [1.0] * HALF), steps)
    rounds_up = builder.fcmp_ordered(">=", rest, ir.Constant(DOUBLES, [0.5] * HALF))
    return builder.fptosi(
        builder.fadd(whole, builder.select(rounds_up, one, ir.Constant(DOUBLES, None))), SHORT
    )


@emits
def write_bytes(builder: Builder, tile: Vectors, limits: Address, at: Places, count: Int64) -> None:
    """Write each pixel's row as bytes, see ``Limits``, to its address: its first ``count`` ones
    where there are more.
    """
    vectors = tile.kind.shape[1]
    octets = packed(builder, tile.value, tile.kind.count, Limits(builder, limits))
    places = [
        (builder.extract_value(at.value, i // vectors), i % vectors) for i in range(tile.kind.count)
    ]
    results = [
        _lanes_of(builder, octets[i // 4], _ORDER[LANES * (i % 4) : LANES * (i % 4 + 1)])
        for i in range(tile.kind.count)
    ]
    _write(builder, results, places, count, vectors)


@emits
def write_channels(
    builder: Builder, tile: Vectors, limits: Address, at: Places, count: Int64
) -> None:
    """Write rows of 64 bytes, whose vectors are from ``dots.add_taps``, see ``Limits``: whole where
    there is one address for each, else in pieces of 16, the first ``count`` of each.
    """
    rows = tile.kind.shape[0]
    octets = packed(builder, tile.value, tile.kind.count, Limits(builder, limits))
    if at.kind.count == rows:
        for i, result in enumerate(octets):
            store(builder, result, builder.extract_value(at.value, i), align=1)
        return
    places = [(builder.extract_value(at.value, i), 0) for i in range(4 * rows)]
    results = [
        _lanes_of(builder, octets[i // 4], list(range(LANES * (i % 4), LANES * (i % 4 + 1))))
        for i in range(4 * rows)
    ]
    _write(builder, results, places, count, 1)


class ByteLimits(Record):
    """Constants that turn steps into bytes: ``zero_point`` is added, sums are clamped to ``low``
    and ``high``, all three as signed bytes have them, and the bits ``turned`` are flipped at last.
    """

    zero_point: int
    low: int
    high: int
    turned: int


class Limits:
    """The ``ByteLimits`` at an address, in all lanes."""

    def __init__(self, builder: Builder, address: Value) -> None:
        def number(name: str, kind: Form, count: int) -> Value:
            limit = load(builder, I64, address, ByteLimits.offset(name))
            limit = builder.trunc(limit, kind)
            return wide_splat(builder, limit, count)

        self.plus = number("zero_point", I16, 2 * LANES)
        self.low, self.high, self.turned = (
            number(name, I8, 4 * LANES) for name in ("low", "high", "turned")
        )


def packed(builder: Builder, tile: Value, count: int, limits: Limits) -> list[Value]:
    """Pack vectors, four at a time, to 64 bytes: of each the first four, then of each the next
    four, and so on.
    """
    values = [builder.extract_value(tile, i) for i in range(count)]
    values += [ir.Constant(INTS, None)] * (-count % 4)
    results = []
    for first in range(0, count, 4):
        a, b, c, d = values[first : first + 4]
        low, high = (_with_zero(builder, *pair, limits) for pair in ((a, b), (c, d)))
        narrow = _halved(builder, low, high, "packsswb", I8)
        narrow = of_llvm(builder, "llvm.smax.v64i8", narrow, limits.low)
        narrow = of_llvm(builder, "llvm.smin.v64i8", narrow, limits.high)
        results.append(builder.xor(narrow, limits.turned))
    return results


_ORDER = [LANES * (lane // 4 % 4) + 4 * (lane // LANES) + lane % 4 for lane in range(4 * LANES)]
"""Where the bytes of ``packed`` come from; it leads back as well."""


def shorts(builder: Builder, lower: Value, upper: Value) -> Value:
    """Narrow two vectors of int32 to one of int16, saturated."""
    halves = _halved(builder, lower, upper, "packssdw", I16)
    return _lanes_of(
        builder, halves, [8 * (i % 16 // 4) + 4 * (i // 16) + i % 4 for i in range(32)]
    )


def in_order(builder: Builder, octets: Value) -> Value:
    """Reorder the 64 bytes of ``packed``, vector after vector."""
    return _lanes_of(builder, octets, _ORDER)


def _with_zero(builder: Builder, a: Value, b: Value, limits: Limits) -> Value:
    """Narrow two vectors to int16 and add the zero point."""
    return of_llvm(
        builder, "llvm.sadd.sat.v32i16", _halved(builder, a, b, "packssdw", I16), limits.plus
    )


def _halved(builder: Builder, a: Value, b: Value, name: str, narrow: Form) -> Value:
    """Narrow two vectors to one of integers half as wide, saturated: of each the first 128 bits,
    then of each the next ones, and so on, as ``vpackssdw`` and ``vpacksswb`` have it.
    """
    lanes = a.type.count
    result = ir.VectorType(narrow, 2 * lanes)
    if has("avx512bw"):
        kind = ir.FunctionType(result, [a.type, b.type])
        function = cgutils.get_or_insert_function(
            builder.module, kind, f"llvm.x86.avx512.{name}.512"
        )
        return builder.call(function, [a, b])
    if has("avx2"):
        return by_halves(builder, name, result, a, b)
    part = lanes // 4
    order = [
        lanes * source + part * quarter + i
        for quarter in range(4)
        for source in (0, 1)
        for i in range(part)
    ]
    pair = wide_shuffle(builder, a, b, order)
    most = 2 ** (narrow.width - 1) - 1
    for name, limit in (("smin", most), ("smax", -most - 1)):
        bound = ir.Constant(pair.type, [limit] * (2 * lanes))
        pair = of_llvm(builder, f"llvm.{name}.v{2 * lanes}i{2 * narrow.width}", pair, bound)
    return builder.trunc(pair, result)


def _lanes_of(builder: Builder, value: Value, lanes: list[int]) -> Value:
    return wide_shuffle(builder, value, value, lanes)


def _write(
    builder: Builder,
    results: Sequence[Value],
    places: Sequence[tuple[Value, int]],
    count: Value,
    vectors: int,
) -> None:
    """Write vectors of bytes to addresses and numbers of vectors behind them."""
    full = builder.icmp_signed(">=", count, ir.Constant(I64, LANES * vectors))
    with builder.if_else(full) as (everything, rest):
        with everything:
            for result, (address, v) in zip(results, places, strict=True):
                store(builder, result, address, LANES * v, align=1)
        with rest:
            for result, (address, v) in zip(results, places, strict=True):
                there = builder.add(address, ir.Constant(I64, LANES * v))
                store_first_bytes(builder, result, there, count, LANES * v)
