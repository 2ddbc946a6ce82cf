"""Addresses as pointers to integers of several sizes."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from llvmlite import ir

from luciole.kernels.jit.scalars import literal_intrinsic, types


class Kind(IntEnum):
    """Integers in memory."""

    INT8 = 0
    UINT8 = 1
    INT16 = 2
    INT32 = 3

    @property
    def size(self) -> int:
        """Bytes of one integer."""
        return _TYPES[self][1] // 8


_TYPES = {
    Kind.INT8: (types.int8, 8),
    Kind.UINT8: (types.uint8, 8),
    Kind.INT16: (types.int16, 16),
    Kind.INT32: (types.int32, 32),
}


@literal_intrinsic
def integers_at(typing_context: Any, address: Any, kind: Any) -> Any:
    """An address as a pointer to integers of a kind, a constant when a kernel is compiled."""
    element, bits = _TYPES[kind.literal_value]

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], ir.IntType(bits).as_pointer())

    return types.CPointer(element)(types.int64, kind), generate
