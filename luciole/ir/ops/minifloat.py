"""CUSTOM operators of luciole for networks that compute with minifloats: weights read from codes,
and results rounded.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from luciole.ir.errors import ShapeError
from luciole.ir.fields import INDEX, attr, like, operand
from luciole.ir.minifloat import Minifloat, unpack_codes
from luciole.ir.op import Op
from luciole.ir.ops.fill import wanted_shape
from luciole.ir.rules import rank, settled
from luciole.ir.value import Shape, Value, element_count
from luciole.schema.enums import BuiltinOperator, TensorType


class MinifloatDecode(Op, code=BuiltinOperator.CUSTOM, custom_code="MinifloatDecode"):
    """The numbers that codes of 1 + exponent_bits + mantissa_bits bits stand for, times 2^shift.

    ``codes`` [bytes] hold one code behind the other, the lowest bit first; the result is FLOAT32
    and has the extents ``dims``. See ``luciole.ir.minifloat``.
    """

    codes: Value = operand()
    dims: Value = operand(dtype=INDEX)

    exponent_bits: int = attr(default=5, dump="exponent_bits")
    mantissa_bits: int = attr(default=10, dump="mantissa_bits")
    shift: int = attr(default=0, dump="shift")

    def infer_dtype(self, /) -> TensorType:
        return TensorType.FLOAT32

    def infer_shape(self, /) -> Shape:
        (size,) = rank(self.codes, "codes", 1)
        shape = wanted_shape(self, self.dims, "dims")
        check_bytes(self, size, shape)
        return shape

    def verify(self, /) -> Iterator[str]:
        yield from number_format(self).faults()


def check_bytes(op: MinifloatDecode, size: int | None, shape: Shape) -> None:
    """Raise ShapeError unless codes of a shape take ``size`` bytes."""
    extents = [n for n in shape if n is not None]
    if size is None or len(extents) < len(shape):
        return
    needed = number_format(op).bytes(tuple(extents))
    if size != needed:
        raise ShapeError(f"codes has {size} bytes, dims {extents} take {needed}")


class MinifloatRound(Op, code=BuiltinOperator.CUSTOM, custom_code="MinifloatRound"):
    """Each element rounded to the nearest minifloat times 2^shift, halves to even.

    What is too large becomes the largest number, NaN stays. See ``luciole.ir.minifloat``.
    """

    input: Value = operand()

    exponent_bits: int = attr(default=5, dump="exponent_bits")
    mantissa_bits: int = attr(default=10, dump="mantissa_bits")
    shift: int = attr(default=0, dump="shift")

    infer_shape = like("input")

    def infer_dtype(self, /) -> TensorType:
        return TensorType.FLOAT32

    def verify(self, /) -> Iterator[str]:
        yield from number_format(self).faults()


def number_format(op: MinifloatDecode | MinifloatRound) -> Minifloat:
    """Return the number format in an operator's attributes."""
    return Minifloat(op.exponent_bits, op.mantissa_bits, op.shift)


def minifloat_of(value: Value) -> Minifloat | None:
    """Return the number format that a tensor was read from or rounded to, None where it was
    neither.
    """
    made = None if value.producer is None else value.producer.op
    if not isinstance(made, MinifloatDecode | MinifloatRound):
        return None
    return None if any(made.verify()) else number_format(made)


def constant_codes(value: Value) -> NDArray[np.uint32] | None:
    """Unpack the codes that a tensor is read from, in its shape; None where they are no constant
    or not as many as they should be.
    """
    made, numbers = None if value.producer is None else value.producer.op, minifloat_of(value)
    if not isinstance(made, MinifloatDecode) or numbers is None or None in value.shape:
        return None
    packed, shape = made.codes.data, settled(value.shape)
    if packed is None or packed.dtype != np.uint8 or packed.size != numbers.bytes(shape):
        return None
    return unpack_codes(packed, numbers.bits, element_count(shape)).reshape(shape)
