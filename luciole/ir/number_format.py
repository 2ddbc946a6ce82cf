"""Describe how the elements of an array are stored, one class for each kind of format: floats,
integers with a scale (``Affine``), and learned levels.

A further kind (minifloat, ...) is one more class with the calls of ``NumberFormat``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from luciole.ir import learned_levels
from luciole.ir.dtypes import NUMPY, Array, byte_count, element_bits
from luciole.ir.learned_levels import Floats
from luciole.ir.quantization import Affine
from luciole.ir.value import element_count
from luciole.schema.enums import TensorType

__all__ = ["Affine", "Float", "LearnedLevels", "NumberFormat"]


class NumberFormat(Protocol):
    """Format of an array's elements: codes of a few bits that stand for real numbers."""

    @property
    def bits(self) -> int:
        """Bits of one code."""

    def encode(self, x: Array) -> Array:
        """Find the nearest codes of real numbers."""

    def decode(self, codes: Array) -> NDArray[np.float64]:
        """Compute the real numbers that codes stand for."""

    def bytes(self, shape: tuple[int, ...]) -> int:
        """Count the bytes that an array of this shape takes in a file, with the parameters for
        decoding.
        """


@dataclass(frozen=True)
class Float:
    """Floating-point numbers of a type: they are their own codes."""

    dtype: TensorType = TensorType.FLOAT32

    @property
    def bits(self) -> int:
        """Bits of one number."""
        return element_bits(self.dtype) or 0

    def encode(self, x: Array) -> Array:
        """Round to the nearest numbers of the type, halves to even."""
        return x.astype(NUMPY[self.dtype])

    def decode(self, codes: Array) -> NDArray[np.float64]:
        """Convert the numbers to double precision."""
        return codes.astype(np.float64)

    def bytes(self, shape: tuple[int, ...]) -> int:
        """Count the bytes that an array of this shape takes in a file."""
        return byte_count(self.dtype, element_count(shape)) or 0


@dataclass(frozen=True, eq=False)
class LearnedLevels:
    """Levels offset + sum_i (+-a_i); bit i of a code is the sign of a_i.

    ``basis`` is [K] and ``offset`` [] for a whole array, or [o, K] and [o] for one whose entries of
    the first axis have levels of their own. ``widths`` [o] are the bits of each entry where they
    differ: what is behind them in its basis is 0.
    """

    basis: Floats
    offset: Floats
    widths: NDArray[np.intp] | None = None

    @property
    def bits(self) -> int:
        """Bits of one code, the most where they differ."""
        return int(self.basis.shape[-1])

    @cached_property
    def levels(self) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        """The levels in rising order, [2^K] or [o, 2^K], and the code of each."""
        return learned_levels.levels(self.basis, self.offset)

    @property
    def thresholds(self) -> NDArray[np.float32]:
        """Where one level ends and the next begins, [2^K - 1] or [o, 2^K - 1]."""
        return learned_levels.thresholds(self.levels[0])

    def encode(self, x: Array) -> NDArray[np.intp]:
        """Find the codes of the nearest levels; a tie goes to the lower one, and NaN to the
        lowest.
        """
        _, order = self.levels
        if order.ndim == 1:
            return order[learned_levels.encode(x, self.thresholds)]
        rows = x.reshape(len(order), -1)
        place = learned_levels.encode_rows(rows, self.thresholds)
        return np.take_along_axis(order, place, axis=1).reshape(x.shape)

    def decode(self, codes: Array) -> NDArray[np.float64]:
        """Take the levels that codes stand for."""
        return self._each(learned_levels.spanned(self.basis, self.offset), codes)

    def ranks(self, codes: Array) -> NDArray[np.intp]:
        """Find the place of each code's level in rising order."""
        return self._each(np.argsort(self.levels[1], axis=-1), codes)

    def _each(self, table: Array, codes: Array) -> Array:
        """Take, for each code, its entry in a table [2^K] or [o, 2^K]."""
        if table.ndim == 1:
            return np.asarray(table[codes])
        rows = codes.reshape(len(table), -1)
        return np.take_along_axis(table, rows, axis=1).reshape(codes.shape)

    def bytes(self, shape: tuple[int, ...]) -> int:
        """Count the bytes that an array of this shape takes in a file: a word for 32 signs along
        its last axis, the basis, and offsets that are not 0.
        """
        count = self.basis.size if self.widths is None else int(self.widths.sum())
        rows = max(self.basis.size // self.bits, 1)
        planes = learned_levels.plane_bytes(shape, 1) // rows * count
        return planes + 4 * count + (4 * rows if np.any(self.offset) else 0)
