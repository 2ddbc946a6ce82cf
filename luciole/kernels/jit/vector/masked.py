"""Vectors of which only the first lanes are in memory: nothing is touched behind them."""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils

from luciole.kernels.jit.emits import Builder, Form, Value
from luciole.kernels.jit.scalars import I64
from luciole.kernels.jit.vector.vectors import (
    BYTES,
    FLOATS,
    I32,
    INTS,
    LANES,
    SHORTS,
    pointer,
    splat,
)

TRUTHS = ir.VectorType(ir.IntType(1), LANES)
"""One truth value for each lane."""

_NUMBERS = ir.Constant(INTS, list(range(LANES)))
NO_BYTES = ir.Constant(BYTES, None)
_ALIGNMENT = ir.Constant(I32, 4)


def lanes_before(builder: Builder, count: Value, first: int) -> Value:
    """Find the lanes of a vector that are among ``count`` elements, where the vector's first is
    number ``first``.
    """
    left = builder.sub(count, ir.Constant(I64, first))
    few = builder.icmp_signed("<", left, ir.Constant(I64, LANES))
    some = builder.icmp_signed(">", left, ir.Constant(I64, 0))
    left = builder.select(few, left, ir.Constant(I64, LANES))
    left = builder.select(some, left, ir.Constant(I64, 0))
    return builder.icmp_signed("<", _NUMBERS, splat(builder, builder.trunc(left, I32)))


def load_first(builder: Builder, address: Value, offset: int, lanes: Value, others: Value) -> Value:
    """Load the floats of some lanes from an address, ``others`` in the rest."""
    place = pointer(builder, address, FLOATS, offset)
    kinds = [place.type, I32, TRUTHS, FLOATS]
    function = ir.FunctionType(FLOATS, kinds)
    load = cgutils.get_or_insert_function(
        builder.module, function, f"llvm.masked.load.v{LANES}f32.p0"
    )
    return builder.call(load, [place, _ALIGNMENT, lanes, others])


def store_first(builder: Builder, value: Value, address: Value, offset: int, lanes: Value) -> None:
    """Write some lanes of a vector of floats to an address."""
    place = pointer(builder, address, FLOATS, offset)
    function = ir.FunctionType(ir.VoidType(), [FLOATS, place.type, I32, TRUTHS])
    store = cgutils.get_or_insert_function(
        builder.module, function, f"llvm.masked.store.v{LANES}f32.p0"
    )
    builder.call(store, [value, place, _ALIGNMENT, lanes])


def load_first_bytes(
    builder: Builder, address: Value, lanes: Value, others: Value = NO_BYTES
) -> Value:
    """Load the bytes of some lanes from an address, ``others`` in the rest."""
    place = pointer(builder, address, BYTES)
    function = ir.FunctionType(BYTES, [place.type, I32, TRUTHS, BYTES])
    load = cgutils.get_or_insert_function(
        builder.module, function, f"llvm.masked.load.v{LANES}i8.p0"
    )
    return builder.call(load, [place, ir.Constant(I32, 1), lanes, others])


def store_first_bytes(
    builder: Builder, value: Value, address: Value, count: Value, first: int = 0
) -> None:
    """Write a vector of bytes to an address, without the lanes that ``lanes_before`` leaves out.

    The count is hidden from LLVM: with AVX-512 it writes 4 bytes, not 1, where it knows that the
    first lane alone is in and bytes were int32 before.
    """
    _store_first(builder, value, BYTES, address, count, first)


def store_first_shorts(
    builder: Builder, value: Value, address: Value, count: Value, first: int = 0
) -> None:
    """Write a vector of int16 to an address in the same way."""
    _store_first(builder, value, SHORTS, address, count, first)


def load_first_shorts(builder: Builder, address: Value, lanes: Value) -> Value:
    """Load the int16 of some lanes from an address, 0 in the rest."""
    place = pointer(builder, address, SHORTS)
    function = ir.FunctionType(SHORTS, [place.type, I32, TRUTHS, SHORTS])
    load = cgutils.get_or_insert_function(
        builder.module, function, f"llvm.masked.load.v{LANES}i16.p0"
    )
    return builder.call(load, [place, ir.Constant(I32, 1), lanes, ir.Constant(SHORTS, None)])


def _store_first(
    builder: Builder, value: Value, form: Form, address: Value, count: Value, first: int
) -> None:
    place = pointer(builder, address, form)
    function = ir.FunctionType(ir.VoidType(), [form, place.type, I32, TRUTHS])
    name = f"llvm.masked.store.v{LANES}i{form.element.width}.p0"
    store = cgutils.get_or_insert_function(builder.module, function, name)
    hidden = builder.asm(ir.FunctionType(I64, [I64]), "", "=r,0", [count], side_effect=False)
    lanes = lanes_before(builder, hidden, first)
    builder.call(store, [value, place, ir.Constant(I32, 1), lanes])
