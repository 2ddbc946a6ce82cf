"""Addresses as pointers to numbers of several kinds."""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated, TypeAlias

from llvmlite import ir

from luciole.kernels.jit.emits import Address, Builder, Literal, Value, emits, types


class Kind(IntEnum):
    """Numbers in memory."""

    INT8 = 0
    UINT8 = 1
    INT16 = 2
    INT32 = 3
    INT64 = 4
    FLOAT32 = 5
    UINT16 = 6

    @property
    def size(self) -> int:
        """Bytes of one number."""
        return _TYPES[self][1] // 8


_TYPES = {
    Kind.INT8: (types.int8, 8),
    Kind.UINT8: (types.uint8, 8),
    Kind.INT16: (types.int16, 16),
    Kind.INT32: (types.int32, 32),
    Kind.INT64: (types.int64, 64),
    Kind.FLOAT32: (types.float32, 32),
    Kind.UINT16: (types.uint16, 16),
}


Numbers: TypeAlias = Annotated[Value, lambda address, kind: types.CPointer(_TYPES[kind][0])]
"""A pointer to numbers of the kind that the second operand, a ``Literal``, says."""


@emits
def numbers_at(builder: Builder, address: Address, kind: Literal) -> Numbers:
    """Cast an address to a pointer to numbers of a kind, a constant when a kernel is compiled."""
    is_float = kind == Kind.FLOAT32
    form = ir.FloatType() if is_float else ir.IntType(8 * Kind(kind).size)
    return builder.inttoptr(address, form.as_pointer())


@emits
def integers_at(builder: Builder, address: Address, kind: Literal) -> Numbers:
    """Cast an address to a pointer to integers of a kind, a constant when a kernel is compiled."""
    return builder.inttoptr(address, ir.IntType(8 * Kind(kind).size).as_pointer())


DoublePointer: TypeAlias = Annotated[Value, types.CPointer(types.float64)]


@emits
def doubles_at(builder: Builder, address: Address) -> DoublePointer:
    """Cast an address to a pointer to float64."""
    return builder.inttoptr(address, ir.DoubleType().as_pointer())
