"""Tensors that an operator reads from constant codes: the codes and what they stand for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from luciole.ir.dtypes import Array
from luciole.ir.errors import LucioleError, ShapeError
from luciole.ir.number_format import Affine, LearnedLevels, NumberFormat
from luciole.ir.op import Op
from luciole.ir.ops.levelsdecode import CodedLevels, LevelsDecode, read_levels
from luciole.ir.ops.minifloat import MinifloatDecode, constant_codes, minifloat_of
from luciole.ir.rules import settled
from luciole.ir.value import Value
from luciole.schema.enums import TensorType


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


def unpacked(op: Op) -> tuple[Array]:
    """Compute the result of a decoder, in its own type. Raises ShapeError for codes that do not fit
    it.
    """
    result = op.results[0]
    constant = decoded(result)
    if constant is None:
        raise ShapeError(f"{op}: its codes do not fit")
    values = constant.values()
    if result.dtype != TensorType.INT8:
        return (values,)
    return (Affine.of(result, "the weights tensor", only_read=True).encode(values).astype(np.int8),)


def _minifloats(_: Op, value: Value) -> Decoded | None:
    numbers, codes = minifloat_of(value), constant_codes(value)
    return None if numbers is None or codes is None else Decoded(codes, numbers)


def _levels(op: LevelsDecode, value: Value) -> Decoded | None:
    codes, basis = op.codes.data, op.basis.data
    if codes is None or basis is None:
        return None
    beside = (None if v is None else v.data for v in (op.scales, op.offsets))
    try:
        codes, levels = read_levels(op, CodedLevels(codes, basis, *beside), settled(value.shape))
        return Decoded(
            codes, levels if basis.dtype != np.int8 else _real(levels, value, op.axis), op.axis
        )
    except LucioleError:
        return None


def _real(levels: LearnedLevels, value: Value, axis: int) -> LearnedLevels:
    """Return the real numbers that levels stand for which are integers of a tensor's scales."""
    affine = Affine.of(value, "the weights tensor", only_read=True)
    scale = affine.scale.astype(np.float64)
    if scale.size > 1 and (affine.axis != axis or scale.shape != np.shape(levels.offset)):
        raise LucioleError(f"scales of axis {affine.axis} do not fit levels of axis {axis}")
    return LearnedLevels(levels.basis * scale.reshape(-1, 1), levels.offset * scale)


_READERS: dict[type, Callable[[Any, Value], Decoded | None]] = {
    MinifloatDecode: _minifloats,
    LevelsDecode: _levels,
}
