"""Tensors that an operator reads from constant codes: the codes and what they stand for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from luciole.ir.dtypes import Array
from luciole.ir.errors import LucioleError
from luciole.ir.number_format import NumberFormat
from luciole.ir.op import Op
from luciole.ir.ops.levelsdecode import LevelsDecode, read_levels
from luciole.ir.ops.minifloat import MinifloatDecode, constant_codes, minifloat_of
from luciole.ir.rules import settled
from luciole.ir.value import Value


@dataclass(frozen=True, eq=False)
class Decoded:
    """Codes with the entries of ``axis`` in front, and their format."""

    codes: Array
    format: NumberFormat
    axis: int = 0

    def values(self) -> Array:
        """Compute the numbers that the codes stand for, in the tensor's shape."""
        numbers = self.format.decode(self.codes).astype(np.float32)
        return np.moveaxis(numbers, 0, self.axis)


def is_decoder(op: Op | None) -> bool:
    """Return whether an operator does nothing but read numbers from constant codes."""
    if not isinstance(op, MinifloatDecode | LevelsDecode):
        return False
    return all(v is None or v.is_constant for v in op.operands)


def decoded(value: Value) -> Decoded | None:
    """Read a tensor that is made of constant codes; None for another one, and for codes that do not
    fit it.
    """
    op = None if value.producer is None else value.producer.op
    read = _READERS.get(type(op))
    return None if read is None or not is_decoder(op) or None in value.shape else read(op, value)


def _minifloats(_: Op, value: Value) -> Decoded | None:
    numbers, codes = minifloat_of(value), constant_codes(value)
    return None if numbers is None or codes is None else Decoded(codes, numbers)


def _levels(op: LevelsDecode, value: Value) -> Decoded | None:
    operands = (op.codes, op.basis, op.scales)
    try:
        arrays = [None if v is None else v.data for v in operands]
        return Decoded(*read_levels(op, arrays, settled(value.shape)), op.axis)
    except LucioleError:
        return None


_READERS: dict[type, Callable[[Any, Value], Decoded | None]] = {
    MinifloatDecode: _minifloats,
    LevelsDecode: _levels,
}
