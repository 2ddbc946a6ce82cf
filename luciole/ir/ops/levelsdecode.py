"""CUSTOM operator of luciole that reads float numbers from codes of learned levels, for operators
whose weights have no kernel of their own for them.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from luciole.ir.dtypes import Array
from luciole.ir.errors import ShapeError
from luciole.ir.fields import INDEX, attr, operand
from luciole.ir.minifloat import unpack_codes
from luciole.ir.number_format import LearnedLevels
from luciole.ir.op import Op
from luciole.ir.ops.fill import wanted_shape
from luciole.ir.rules import rank, settled
from luciole.ir.value import Shape, Value, element_count
from luciole.schema.enums import BuiltinOperator, TensorType

MOST_BITS = 4
"""Bits of a code at the most."""
_FLOAT = (TensorType.FLOAT32,)
_TYPES = ["uint8", "float32", "float32"]


class LevelsDecode(Op, code=BuiltinOperator.CUSTOM, custom_code="LevelsDecode"):
    """The levels that codes of K bits stand for: scale_o sum_k +-basis_k.

    A bit is the sign of its element, 1 for plus. ``codes`` [bytes] hold one code behind the other,
    the lowest bit first; the result is FLOAT32 and has the extents ``dims``. ``basis`` is [o, K]
    for the o entries of ``axis``, or [1, K] for all of them; ``scales`` [o] are 1 where they are
    left out. See ``luciole.ir.learned_levels``.
    """

    codes: Value = operand()
    dims: Value = operand(dtype=INDEX)
    basis: Value = operand(dtype=_FLOAT)
    scales: Value | None = operand(default=None, dtype=_FLOAT)

    axis: int = attr(default=0, dump="axis")

    unpacks = True

    def infer_dtype(self, /) -> TensorType:
        return TensorType.FLOAT32

    def infer_shape(self, /) -> Shape:
        rank(self.codes, "codes", 1)
        rank(self.basis, "basis", 2)
        shape = wanted_shape(self, self.dims, "dims")
        shapes = [self.codes.shape, self.basis.shape]
        shapes += [] if self.scales is None else [self.scales.shape]
        if not any(None in extents for extents in (shape, *shapes)):
            check_sizes(self, [settled(extents) for extents in shapes], settled(shape))
        return shape


def check_sizes(
    op: LevelsDecode, shapes: Sequence[tuple[int, ...]], shape: tuple[int, ...]
) -> None:
    """Raise ShapeError unless the shapes of codes, basis and perhaps scales fit numbers of a
    shape.
    """
    if [len(extents) for extents in shapes] not in ([1, 2], [1, 2, 1]):
        raise ShapeError("codes have 1 axis, basis has 2, scales have 1")
    (size,), (rows, bits), *scales = shapes
    if not 1 <= bits <= MOST_BITS:
        raise ShapeError(f"codes have {bits} bits, 1 to {MOST_BITS} are possible")
    if not 0 <= op.axis < len(shape):
        raise ShapeError(f"axis is {op.axis}, dims has {len(shape)} extents")
    entries = shape[op.axis]
    if rows not in (1, entries):
        raise ShapeError(f"basis has {rows} rows, axis {op.axis} has {entries} entries")
    if scales and scales[0] != (entries,):
        raise ShapeError(f"scales are {list(scales[0])}, axis {op.axis} has {entries} entries")
    needed = -(-element_count(shape) * bits // 8)
    if size != needed:
        raise ShapeError(f"codes has {size} bytes, dims {list(shape)} take {needed}")


def read_levels(
    op: LevelsDecode, arrays: Sequence[Array | None], shape: tuple[int, ...]
) -> tuple[NDArray[np.uint32], LearnedLevels]:
    """Read codes, the entries of ``axis`` in front, and their levels from arrays of codes, basis
    and perhaps scales. Raises ShapeError for arrays that do not fit the shape, and for other types.
    """
    present = [array for array in arrays if array is not None]
    if [str(array.dtype) for array in present] not in (_TYPES[:2], _TYPES):
        raise ShapeError("codes are UINT8, basis and scales FLOAT32")
    check_sizes(op, [array.shape for array in present], shape)
    packed, basis, *scales = present
    codes = unpack_codes(packed, basis.shape[1], element_count(shape)).reshape(shape)
    numbers = scaled_levels(basis, scales[0] if scales else None, shape[op.axis])
    return np.moveaxis(codes, op.axis, 0), numbers


def scaled_levels(basis: Array, scales: Array | None, entries: int) -> LearnedLevels:
    """Return the levels of each of some entries, given bases [entries, K] or [1, K] and perhaps
    scales [entries].
    """
    wide = np.broadcast_to(basis, (entries, basis.shape[1]))
    return LearnedLevels(wide if scales is None else wide * scales[:, None], np.zeros(entries))
