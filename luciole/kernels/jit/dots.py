"""Sums of products of 8 bit integers in vector registers: four products for each lane at a time.

Inputs are unsigned bytes (an integer q from -128 to 127 as q + 128), weights signed ones, and sums
int32. What the 128, or a zero point, adds up to is taken off where sums begin: -128 times the sum
of an output's weights.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils

from luciole.kernels.jit.masked import TRUTHS, lanes_before, load_first
from luciole.kernels.jit.pixels import behind, repeated
from luciole.kernels.jit.processor import features
from luciole.kernels.jit.scalars import I64, intrinsic, literal_intrinsic, types
from luciole.kernels.jit.vectors import (
    FLOATS,
    I32,
    INTS,
    LANES,
    Tile,
    gather,
    load,
    of_llvm,
    pointer,
    splat,
)

BYTES = ir.VectorType(ir.IntType(8), LANES)


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
            own = builder.load(pointer(builder, address, I32))
            own.align = 1
            four = splat(builder, own)
            for factor in factors:
                before = builder.extract_value(tile_value, len(sums))
                sums.append(add(builder, before, four, factor))
        return gather(builder, sums)

    return tile(tile, at, types.int64, types.int64), generate


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
def scaled(typing_context: Any, tile: Any, factor: Any, starts: Any) -> Any:
    """Sums as floats: sum * factor + start, each rounded; ``starts`` is the address of floats
    [outputs].
    """
    rows = Tile(types.float32, *tile.shape)
    vectors = tile.shape[1]

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        tile_value, factor, starts = args
        factor = splat(builder, factor)
        begin = [load(builder, FLOATS, starts, 4 * LANES * v) for v in range(vectors)]
        results = []
        for i in range(tile.count):
            number = builder.sitofp(builder.extract_value(tile_value, i), FLOATS)
            results.append(builder.fadd(builder.fmul(number, factor), begin[i % vectors]))
        return gather(builder, results)

    return rows(tile, types.float32, types.int64), generate


_MAGNITUDE = ir.Constant(INTS, [0x7FFFFFFF] * LANES)


@intrinsic
def raised(typing_context: Any, tile: Any, x: Any, count: Any) -> Any:
    """A vector of bit patterns, raised to those of the magnitudes of ``count`` floats, at most 16,
    at ``x``. As integers they rise with the magnitude, infinity and NaN highest.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        before = builder.extract_value(args[0], 0)
        given = load_first(
            builder, args[1], 0, lanes_before(builder, args[2], 0), ir.Constant(FLOATS, None)
        )
        bits = builder.and_(builder.bitcast(given, INTS), _MAGNITUDE)
        more = builder.icmp_signed(">", bits, before)
        return gather(builder, [builder.select(more, bits, before)])

    return tile(tile, types.int64, types.int64), generate


@intrinsic
def highest(typing_context: Any, tile: Any) -> Any:
    """The largest number of a vector of int32."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = builder.extract_value(args[0], 0)
        found = builder.extract_element(vector, ir.Constant(I32, 0))
        for lane in range(1, LANES):
            other = builder.extract_element(vector, ir.Constant(I32, lane))
            found = builder.select(builder.icmp_signed(">", other, found), other, found)
        return builder.sext(found, I64)

    return types.int64(tile), generate


@intrinsic
def write_rounded(typing_context: Any, x: Any, inverse: Any, to: Any, count: Any) -> Any:
    """Write ``count`` floats, at most 16, times a number as bytes: rounded half away from zero, cut
    off at -127 and 127, plus 128.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        x, inverse, to, count = args
        inside = lanes_before(builder, count, 0)
        given = load_first(builder, x, 0, inside, ir.Constant(FLOATS, None))
        values = builder.fmul(given, splat(builder, inverse))
        half = ir.Constant(FLOATS, [0.5] * LANES)
        values = builder.fadd(values, of_llvm(builder, "llvm.copysign.v16f32", half, values))
        low, high = (ir.Constant(FLOATS, [limit] * LANES) for limit in (-127.0, 127.0))
        values = builder.select(builder.fcmp_ordered(">", values, low), values, low)
        values = builder.select(builder.fcmp_ordered("<", values, high), values, high)
        number = builder.add(builder.fptosi(values, INTS), ir.Constant(INTS, [128] * LANES))
        _store_bytes(builder, builder.trunc(number, BYTES), to, inside)
        return context.get_dummy_value()

    return types.void(types.int64, types.float32, types.int64, types.int64), generate


def _store_bytes(builder: Any, value: Any, to: Any, inside: Any) -> None:
    """Write some lanes to an address."""
    place = builder.inttoptr(to, BYTES.as_pointer())
    kind = ir.FunctionType(ir.VoidType(), [BYTES, place.type, I32, TRUTHS])
    name = f"llvm.masked.store.v{LANES}i8.p0"
    store = cgutils.get_or_insert_function(builder.module, kind, name)
    builder.call(store, [value, place, ir.Constant(I32, 1), inside])
