"""Bytes in vector registers: 16 at a time, widened to int32, combined lane by lane, and back."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from llvmlite import ir

from luciole.kernels.jit.emits import Address, Builder, Form, Int64, Literal, Value, emits, types
from luciole.kernels.jit.scalars import I64
from luciole.kernels.jit.vector.conversions import Kind
from luciole.kernels.jit.vector.masked import lanes_before, load_first_bytes, store_first_bytes
from luciole.kernels.jit.vector.vectors import (
    BYTES,
    I32,
    INTS,
    LANES,
    Tile,
    Vectors,
    gather,
    load,
    of_llvm,
    splat,
    store,
    wide_splat,
)

Vector: TypeAlias = Annotated[Vectors, Tile(types.int32, 1)]
"""16 int32, or 64 bytes, in a register."""

Floats: TypeAlias = Annotated[Vectors, Tile(types.float32, 1)]
"""16 floats in a register."""

LONGS = ir.VectorType(I64, LANES)
MANY = ir.VectorType(ir.IntType(8), 4 * LANES)


def in_all(number: int, kind: Form = INTS) -> Value:
    """Make a vector with a constant in every lane."""
    return ir.Constant(kind, [number] * LANES)


@emits
def load_bytes(
    builder: Builder, address: Address, count: Int64, other: Int64, kind: Literal
) -> Vector:
    """Load ``count`` bytes (at most 16) from an address on as int32, reading nothing behind them;
    the other lanes are the byte ``other``. ``kind`` is a constant when a kernel is compiled.
    """
    signed = kind == Kind.INT8
    lanes = lanes_before(builder, count, 0)
    others = splat(builder, builder.trunc(other, BYTES.element))
    loaded = load_first_bytes(builder, address, lanes, others)
    wide = builder.sext(loaded, INTS) if signed else builder.zext(loaded, INTS)
    return gather(builder, [wide])


@emits
def load_all_bytes(builder: Builder, address: Address, kind: Literal) -> Vector:
    """Load 16 bytes from an address on as int32."""
    signed = kind == Kind.INT8
    loaded = load(builder, BYTES, address, align=1)
    wide = builder.sext(loaded, INTS) if signed else builder.zext(loaded, INTS)
    return gather(builder, [wide])


@emits
def in_lanes(builder: Builder, number: Int64) -> Vector:
    """Broadcast a number (int64) to every lane, as int32."""
    return gather(builder, [splat(builder, builder.trunc(number, I32))])


@emits
def plus(builder: Builder, x: Vector, y: Vector) -> Vector:
    """Add lane by lane."""
    x, y = (builder.extract_value(v, 0) for v in (x, y))
    return gather(builder, [builder.add(x, y)])


@emits
def times(builder: Builder, x: Vector, number: Int64) -> Vector:
    """Multiply every lane by a number of 32 bits."""
    factor = splat(builder, builder.trunc(number, I32))
    return gather(builder, [builder.mul(builder.extract_value(x, 0), factor)])


@emits
def larger(builder: Builder, x: Vector, y: Vector) -> Vector:
    """Select the larger of both, lane by lane."""
    x, y = (builder.extract_value(v, 0) for v in (x, y))
    return gather(builder, [builder.select(builder.icmp_signed(">", x, y), x, y)])


@emits
def load_64(builder: Builder, address: Address) -> Vector:
    """Load 64 bytes from an address on, four in each lane."""
    return gather(builder, [load(builder, INTS, address, align=1)])


@emits
def larger_of_64(builder: Builder, x: Vector, y: Vector, kind: Literal) -> Vector:
    """Select the larger of both, byte by byte. ``kind`` is a constant when a kernel is compiled."""
    name = _of_64("max", kind)
    x, y = (builder.bitcast(builder.extract_value(v, 0), MANY) for v in (x, y))
    return gather(builder, [builder.bitcast(of_llvm(builder, name, x, y), INTS)])


@emits
def store_64(
    builder: Builder, x: Vector, low: Int64, high: Int64, address: Address, kind: Literal
) -> None:
    """Write 64 bytes, cut off at two limits. ``kind`` is a constant when a kernel is compiled."""
    highest, lowest = _of_64("max", kind), _of_64("min", kind)
    value = builder.bitcast(builder.extract_value(x, 0), MANY)
    low, high = (
        wide_splat(builder, builder.trunc(n, MANY.element), 4 * LANES) for n in (low, high)
    )
    value = of_llvm(builder, lowest, of_llvm(builder, highest, value, low), high)
    store(builder, value, address, align=1)


def _of_64(name: str, kind: int) -> str:
    """Return LLVM's name of a function of two vectors of 64 bytes."""
    return f"llvm.{'s' if kind == Kind.INT8 else 'u'}{name}.v64i8"


@emits
def store_bytes(
    builder: Builder, x: Vector, low: Int64, high: Int64, address: Address, count: Int64
) -> None:
    """Write the first ``count`` lanes (at most 16), cut off at two limits, as bytes."""
    narrow = _cut_off(builder, x, low, high)
    store_first_bytes(builder, narrow, address, count)


@emits
def store_all_bytes(builder: Builder, x: Vector, low: Int64, high: Int64, address: Address) -> None:
    """Write 16 lanes, cut off at two limits, as bytes."""
    store(builder, _cut_off(builder, x, low, high), address, align=1)


def _cut_off(builder: Builder, tile: Value, low: Value, high: Value) -> Value:
    """Clamp a vector of int32 and narrow it to bytes."""
    low, high = (splat(builder, builder.trunc(n, I32)) for n in (low, high))
    value = builder.extract_value(tile, 0)
    value = builder.select(builder.icmp_signed("<", value, low), low, value)
    value = builder.select(builder.icmp_signed(">", value, high), high, value)
    return builder.trunc(value, BYTES)


@emits
def total_of_lanes(builder: Builder, x: Vector) -> Int64:
    """Add up all lanes, as int64."""
    x = builder.sext(builder.extract_value(x, 0), LONGS)
    total = builder.extract_element(x, ir.Constant(I32, 0))
    for lane in range(1, LANES):
        total = builder.add(total, builder.extract_element(x, ir.Constant(I32, lane)))
    return total
