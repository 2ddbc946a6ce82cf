"""Bytes in vector registers: 16 at a time, widened to int32, combined lane by lane, and back."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from luciole.kernels.jit.conversions import Kind
from luciole.kernels.jit.masked import lanes_before, load_first_bytes, store_first_bytes
from luciole.kernels.jit.scalars import I64, intrinsic, literal_intrinsic, types
from luciole.kernels.jit.vectors import (
    BYTES,
    I32,
    INTS,
    LANES,
    Tile,
    gather,
    load,
    of_llvm,
    splat,
    store,
    wide_splat,
)

VECTOR = Tile(types.int32, 1)
LONGS = ir.VectorType(I64, LANES)
MANY = ir.VectorType(ir.IntType(8), 4 * LANES)


def in_all(number: int, kind: Any = INTS) -> Any:
    """A constant in every lane."""
    return ir.Constant(kind, [number] * LANES)


@literal_intrinsic
def load_bytes(typing_context: Any, address: Any, count: Any, other: Any, kind: Any) -> Any:
    """``count`` bytes (at most 16) from an address on as int32, nothing behind them is read; the
    byte ``other`` in the lanes that are left. ``kind`` is a constant when a kernel is compiled.
    """
    signed = kind.literal_value == Kind.INT8

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address, count, other, _ = args
        lanes = lanes_before(builder, count, 0)
        others = splat(builder, builder.trunc(other, BYTES.element))
        loaded = load_first_bytes(builder, address, lanes, others)
        wide = builder.sext(loaded, INTS) if signed else builder.zext(loaded, INTS)
        return gather(builder, [wide])

    return VECTOR(types.int64, types.int64, types.int64, kind), generate


@literal_intrinsic
def load_all_bytes(typing_context: Any, address: Any, kind: Any) -> Any:
    """16 bytes from an address on as int32."""
    signed = kind.literal_value == Kind.INT8

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        loaded = load(builder, BYTES, args[0], align=1)
        wide = builder.sext(loaded, INTS) if signed else builder.zext(loaded, INTS)
        return gather(builder, [wide])

    return VECTOR(types.int64, kind), generate


@intrinsic
def in_lanes(typing_context: Any, number: Any) -> Any:
    """A number (int64) in every lane, as int32."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return gather(builder, [splat(builder, builder.trunc(args[0], I32))])

    return VECTOR(types.int64), generate


@intrinsic
def plus(typing_context: Any, x: Any, y: Any) -> Any:
    """The sums of lanes."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        x, y = (builder.extract_value(v, 0) for v in args)
        return gather(builder, [builder.add(x, y)])

    return VECTOR(VECTOR, VECTOR), generate


@intrinsic
def larger(typing_context: Any, x: Any, y: Any) -> Any:
    """The larger of both, lane by lane."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        x, y = (builder.extract_value(v, 0) for v in args)
        return gather(builder, [builder.select(builder.icmp_signed(">", x, y), x, y)])

    return VECTOR(VECTOR, VECTOR), generate


@intrinsic
def load_64(typing_context: Any, address: Any) -> Any:
    """64 bytes from an address on, four in each lane."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return gather(builder, [load(builder, INTS, args[0], align=1)])

    return VECTOR(types.int64), generate


@literal_intrinsic
def larger_of_64(typing_context: Any, x: Any, y: Any, kind: Any) -> Any:
    """The larger of both, byte by byte. ``kind`` is a constant when a kernel is compiled."""
    name = _of_64("max", kind)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        x, y = (builder.bitcast(builder.extract_value(v, 0), MANY) for v in args[:2])
        return gather(builder, [builder.bitcast(of_llvm(builder, name, x, y), INTS)])

    return VECTOR(VECTOR, VECTOR, kind), generate


@literal_intrinsic
def store_64(typing_context: Any, x: Any, low: Any, high: Any, address: Any, kind: Any) -> Any:
    """Write 64 bytes, cut off at two limits. ``kind`` is a constant when a kernel is compiled."""
    highest, lowest = _of_64("max", kind), _of_64("min", kind)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value = builder.bitcast(builder.extract_value(args[0], 0), MANY)
        low, high = (
            wide_splat(builder, builder.trunc(n, MANY.element), 4 * LANES) for n in args[1:3]
        )
        value = of_llvm(builder, lowest, of_llvm(builder, highest, value, low), high)
        store(builder, value, args[3], align=1)
        return context.get_dummy_value()

    return types.void(VECTOR, types.int64, types.int64, types.int64, kind), generate


def _of_64(name: str, kind: Any) -> str:
    """LLVM's name of a function of two vectors of 64 bytes."""
    return f"llvm.{'s' if kind.literal_value == Kind.INT8 else 'u'}{name}.v64i8"


@intrinsic
def store_bytes(typing_context: Any, x: Any, low: Any, high: Any, address: Any, count: Any) -> Any:
    """Write the first ``count`` lanes (at most 16), cut off at two limits, as bytes."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        narrow = _cut_off(builder, *args[:3])
        store_first_bytes(builder, narrow, args[3], args[4])
        return context.get_dummy_value()

    return types.void(VECTOR, types.int64, types.int64, types.int64, types.int64), generate


@intrinsic
def store_all_bytes(typing_context: Any, x: Any, low: Any, high: Any, address: Any) -> Any:
    """Write 16 lanes, cut off at two limits, as bytes."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        store(builder, _cut_off(builder, *args[:3]), args[3], align=1)
        return context.get_dummy_value()

    return types.void(VECTOR, types.int64, types.int64, types.int64), generate


def _cut_off(builder: Any, tile: Any, low: Any, high: Any) -> Any:
    """A vector of int32 as bytes."""
    low, high = (splat(builder, builder.trunc(n, I32)) for n in (low, high))
    value = builder.extract_value(tile, 0)
    value = builder.select(builder.icmp_signed("<", value, low), low, value)
    value = builder.select(builder.icmp_signed(">", value, high), high, value)
    return builder.trunc(value, BYTES)


@intrinsic
def total_of_lanes(typing_context: Any, x: Any) -> Any:
    """The sum of all lanes, int64."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        x = builder.sext(builder.extract_value(args[0], 0), LONGS)
        total = builder.extract_element(x, ir.Constant(I32, 0))
        for lane in range(1, LANES):
            total = builder.add(total, builder.extract_element(x, ir.Constant(I32, lane)))
        return total

    return types.int64(VECTOR), generate
