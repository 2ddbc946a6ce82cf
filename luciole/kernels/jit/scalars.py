"""Numbers and addresses inside of kernels."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from llvmlite import ir

from luciole.kernels.jit.emits import Address, Builder, Int64, Value, emits, same, types

Pointer: TypeAlias = Value
"""A C pointer while a kernel is compiled: what ``floats`` and ``words`` make of an address."""

I64 = ir.IntType(64)

FloatPointer: TypeAlias = Annotated[Value, types.CPointer(types.float32)]
WordPointer: TypeAlias = Annotated[Value, types.CPointer(types.uint32)]
DoublePointer: TypeAlias = Annotated[Value, types.CPointer(types.float64)]
LongPointer: TypeAlias = Annotated[Value, types.CPointer(types.int64)]

Integer: TypeAlias = Annotated[int, same]
"""An integer of any size; as a result, of the first operand's."""


@emits
def popcount(builder: Builder, word: Integer) -> Integer:
    """Count the set bits of an unsigned word, as the same type."""
    return builder.ctpop(word)


@emits
def floats(builder: Builder, address: Address) -> FloatPointer:
    """Cast an address to a pointer to float32."""
    return builder.inttoptr(address, ir.FloatType().as_pointer())


@emits
def doubles(builder: Builder, address: Address) -> DoublePointer:
    """Cast an address to a pointer to float64."""
    return builder.inttoptr(address, ir.DoubleType().as_pointer())


@emits
def words(builder: Builder, address: Address) -> WordPointer:
    """Cast an address to a pointer to uint32."""
    return builder.inttoptr(address, ir.IntType(32).as_pointer())


@emits
def longs(builder: Builder, address: Address) -> LongPointer:
    """Cast an address to a pointer to int64."""
    return builder.inttoptr(address, I64.as_pointer())


@emits
def number(builder: Builder, address: Address) -> Int64:
    """Load the int64 at an address."""
    return builder.load(builder.inttoptr(address, I64.as_pointer()))


@emits
def set_number(builder: Builder, address: Address, value: Int64) -> None:
    """Write an int64 to an address."""
    builder.store(value, builder.inttoptr(address, I64.as_pointer()))


@emits
def call(builder: Builder, address: Address, record: Address) -> None:
    """Call the kernel at an address on the record at an address."""
    function = ir.FunctionType(ir.VoidType(), [I64.as_pointer()])
    target = builder.inttoptr(address, function.as_pointer())
    builder.call(target, [builder.inttoptr(record, I64.as_pointer())])


@emits
def nanoseconds(builder: Builder, clock: Address, kind: Int64, now: Address) -> Int64:
    """Read the time from the C library's ``clock_gettime``, whose address is ``clock``, for a kind
    of clock; ``now`` is the address of two int64 to write on.
    """
    function = ir.FunctionType(ir.IntType(32), [ir.IntType(32), I64.as_pointer()])
    time = builder.inttoptr(now, I64.as_pointer())
    target = builder.inttoptr(clock, function.as_pointer())
    builder.call(target, [builder.trunc(kind, ir.IntType(32)), time])
    seconds = builder.mul(builder.load(time), ir.Constant(I64, 10**9))
    fraction = builder.load(builder.gep(time, [ir.Constant(I64, 1)]))
    return builder.add(seconds, fraction)
