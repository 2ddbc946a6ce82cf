"""CUSTOM operator of luciole that reads numbers from codes of learned levels, for operators whose
weights have no kernel of their own for them.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from luciole.ir.dtypes import Array
from luciole.ir.errors import ShapeError
from luciole.ir.fields import INDEX, attr, dtype_of, operand
from luciole.ir.learned_levels import spanned
from luciole.ir.minifloat import unpack_codes
from luciole.ir.number_format import LearnedLevels
from luciole.ir.op import Op
from luciole.ir.ops.fill import wanted_shape
from luciole.ir.rules import rank, settled
from luciole.ir.value import Shape, Value, element_count
from luciole.schema.enums import BuiltinOperator, TensorType

MOST_BITS = 4
"""Bits of a code at the most."""
_NUMBERS = (TensorType.FLOAT32, TensorType.INT8)


class LevelsDecode(Op, code=BuiltinOperator.CUSTOM, custom_code="LevelsDecode"):
    """The levels that codes of K bits stand for: scale_o sum_k +-basis_k + offset_o.

    A bit is the sign of its element, 1 for plus. ``codes`` [bytes] hold one code behind the other,
    the lowest bit first; the result has the extents ``dims``. ``basis`` is [o, K] for the o entries
    of ``axis``, or [1, K] for all of them; ``scales`` [o] are 1 and ``offsets`` [o] 0 where they
    are left out. The result is FLOAT32, or INT8 as basis and offsets are: then it has no scales but
    those of its own quantization. See ``luciole.ir.learned_levels``.
    """

    codes: Value = operand()
    dims: Value = operand(dtype=INDEX)
    basis: Value = operand(dtype=_NUMBERS)
    scales: Value | None = operand(default=None, dtype=_NUMBERS[:1])
    offsets: Value | None = operand(default=None, dtype=_NUMBERS)

    axis: int = attr(default=0, dump="axis")

    unpacks = True
    infer_dtype = dtype_of("basis")

    def infer_shape(self, /) -> Shape:
        rank(self.codes, "codes", 1)
        rank(self.basis, "basis", 2)
        shape = wanted_shape(self, self.dims, "dims")
        operands = (self.codes, self.basis, self.scales, self.offsets)
        shapes = [None if value is None else value.shape for value in operands]
        if not any(None in extents for extents in (shape, *filter(None, shapes))):
            known = [None if extents is None else settled(extents) for extents in shapes]
            check_sizes(self, known, settled(shape))
        return shape


class CodedLevels(NamedTuple):
    """The arrays of a LevelsDecode but for its extents."""

    codes: Array
    basis: Array
    scales: Array | None = None
    offsets: Array | None = None

    @property
    def are_typed(self) -> bool:
        """Whether all have the types that belong together."""
        numbers = [str(a.dtype) for a in (self.basis, self.offsets) if a is not None]
        scaled = None if self.scales is None else str(self.scales.dtype)
        is_float = set(numbers) == {"float32"} and scaled in (None, "float32")
        is_integer = set(numbers) == {"int8"} and scaled is None
        return str(self.codes.dtype) == "uint8" and (is_float or is_integer)


def check_sizes(
    op: LevelsDecode, shapes: Sequence[tuple[int, ...] | None], shape: tuple[int, ...]
) -> None:
    """Raise ShapeError unless the shapes of codes, basis, scales and offsets (None: there are none)
    fit numbers of a shape.
    """
    codes, basis, *by_entry = shapes
    ranks = [len(extents) for extents in (codes, basis, *by_entry) if extents is not None]
    if ranks[:2] != [1, 2] or set(ranks[2:]) > {1} or codes is None or basis is None:
        raise ShapeError("codes, scales and offsets have 1 axis, basis has 2")
    (size,), (rows, bits) = codes, basis
    if not 1 <= bits <= MOST_BITS:
        raise ShapeError(f"codes have {bits} bits, 1 to {MOST_BITS} are possible")
    if not 0 <= op.axis < len(shape):
        raise ShapeError(f"axis is {op.axis}, dims has {len(shape)} extents")
    entries = shape[op.axis]
    if rows not in (1, entries):
        raise ShapeError(f"basis has {rows} rows, axis {op.axis} has {entries} entries")
    for name, extents in zip(("scales", "offsets"), by_entry, strict=False):
        if extents is not None and extents != (entries,):
            raise ShapeError(f"{name} are {list(extents)}, axis {op.axis} has {entries} entries")
    needed = -(-element_count(shape) * bits // 8)
    if size != needed:
        raise ShapeError(f"codes has {size} bytes, dims {list(shape)} take {needed}")


def read_levels(
    op: LevelsDecode, arrays: CodedLevels, shape: tuple[int, ...]
) -> tuple[NDArray[np.uint32], LearnedLevels]:
    """Read codes, the entries of ``axis`` in front, and their levels. Raises ShapeError for arrays
    that do not fit the shape, for other types, and for integers beyond a byte.
    """
    if not arrays.are_typed:
        raise ShapeError("codes are UINT8, all else is FLOAT32, or INT8 without scales")
    check_sizes(op, [None if array is None else array.shape for array in arrays], shape)
    packed, basis, scales, offsets = arrays
    codes = unpack_codes(packed, basis.shape[1], element_count(shape)).reshape(shape)
    levels = scaled_levels(basis, scales, shape[op.axis], offsets)
    if basis.dtype == np.int8:
        _check_reach(levels)
    return np.moveaxis(codes, op.axis, 0), levels


def _check_reach(levels: LearnedLevels) -> None:
    """Raise ShapeError for integers that are not in a byte."""
    reach = spanned(levels.basis, levels.offset)
    low, high = reach.min(initial=0), reach.max(initial=0)
    if low < -128 or high > 127:
        raise ShapeError(f"levels from {low:.0f} to {high:.0f} are no INT8")


def scaled_levels(
    basis: Array, scales: Array | None, entries: int, offsets: Array | None = None
) -> LearnedLevels:
    """Return the levels of each of some entries, given bases [entries, K] or [1, K], and perhaps
    scales and offsets [entries].
    """
    wide = np.broadcast_to(basis, (entries, basis.shape[1]))
    beside = np.zeros(entries) if offsets is None else offsets
    return LearnedLevels(wide if scales is None else wide * scales[:, None], beside)
