"""Numbers and addresses inside of kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types as _numba_types
from numba.extending import intrinsic as _numba_intrinsic

types: Any = _numba_types
intrinsic: Callable[[Callable[..., Any]], Callable[..., Any]] = _numba_intrinsic
literal_intrinsic: Callable[[Callable[..., Any]], Callable[..., Any]] = _numba_intrinsic(
    prefer_literal=True
)

Pointer = Any
"""A C pointer while a kernel is compiled: what ``floats`` and ``words`` make of an address."""

Record = Pointer
"""A kernel's argument while it is compiled: a C pointer to int64."""

I64 = ir.IntType(64)


@intrinsic
def popcount(typing_context: Any, word: Any) -> Any:
    """Number of set bits of an unsigned word, as the same type."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return word(word), generate


@intrinsic
def floats(typing_context: Any, address: Any) -> Any:
    """An address as a pointer to float32."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], ir.FloatType().as_pointer())

    return types.CPointer(types.float32)(types.int64), generate


@intrinsic
def words(typing_context: Any, address: Any) -> Any:
    """An address as a pointer to uint32."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], ir.IntType(32).as_pointer())

    return types.CPointer(types.uint32)(types.int64), generate


@intrinsic
def longs(typing_context: Any, address: Any) -> Any:
    """An address as a pointer to int64."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], I64.as_pointer())

    return types.CPointer(types.int64)(types.int64), generate


@intrinsic
def number(typing_context: Any, address: Any) -> Any:
    """The int64 at an address."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(builder.inttoptr(args[0], I64.as_pointer()))

    return types.int64(types.int64), generate


@intrinsic
def set_number(typing_context: Any, address: Any, value: Any) -> Any:
    """Write an int64 to an address."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[1], builder.inttoptr(args[0], I64.as_pointer()))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@intrinsic
def call(typing_context: Any, address: Any, record: Any) -> Any:
    """Call the kernel at an address on the record at an address."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        function = ir.FunctionType(ir.VoidType(), [I64.as_pointer()])
        target = builder.inttoptr(args[0], function.as_pointer())
        builder.call(target, [builder.inttoptr(args[1], I64.as_pointer())])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@intrinsic
def nanoseconds(typing_context: Any, clock: Any, kind: Any, now: Any) -> Any:
    """The time that the C library's ``clock_gettime``, whose address is ``clock``, gives for a kind
    of clock; ``now`` is the address of two int64 to write on.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        clock, kind, now = args
        function = ir.FunctionType(ir.IntType(32), [ir.IntType(32), I64.as_pointer()])
        time = builder.inttoptr(now, I64.as_pointer())
        target = builder.inttoptr(clock, function.as_pointer())
        builder.call(target, [builder.trunc(kind, ir.IntType(32)), time])
        seconds = builder.mul(builder.load(time), ir.Constant(I64, 10**9))
        fraction = builder.load(builder.gep(time, [ir.Constant(I64, 1)]))
        return builder.add(seconds, fraction)

    return types.int64(types.int64, types.int64, types.int64), generate
