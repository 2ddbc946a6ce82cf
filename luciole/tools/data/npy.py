"""Arrays in NumPy's own format, in a file or in a member of a .npz: the header, then what is asked
for.

The format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from luciole.ir.dtypes import Array
from luciole.ir.value import MOST_AXES, element_count, shape_text
from luciole.schema.printable import shorten
from luciole.tools.data.errors import DataError, damage_refused

MAGIC = b"\x93NUMPY"
PIECE = 1 << 20
"""Bytes that are read at once."""
_LONGEST_HEADER = 10_000
"""Bytes, NumPy's own bound: the header is a Python expression."""


@dataclass(frozen=True)
class NpyArray:
    """An array of which nothing but the header has been read; its contents are read once, in order.

    ``name`` is what it is called in a refusal. ``by_columns``: the first axis is the one that
    changes fastest (Fortran's order).
    """

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    by_columns: bool
    file: IO[bytes]

    def blocks(self, count: int) -> Iterator[Array]:
        """Read the first ``count`` entries along the first axis, a piece at a time; by columns
        all.
        """
        rest = self.shape[1:]
        if self.by_columns:
            yield self._columns(count).reshape(*rest[::-1], count).T
            return
        size = element_count(rest) * self.dtype.itemsize
        step = max(1, PIECE // max(1, size))
        for first in range(0, count, step):
            entries = min(step, count - first)
            yield self._read(entries * size).view(self.dtype).reshape(entries, *rest)

    def whole(self) -> Array:
        """Read all of the array."""
        order: Any = "F" if self.by_columns else "C"
        size = element_count(self.shape) * self.dtype.itemsize
        return self._read(size).view(self.dtype).reshape(self.shape, order=order)

    def _columns(self, count: int) -> Array:
        """Read the first ``count`` elements of every column: [columns, count]."""
        columns, size = element_count(self.shape[1:]), self.dtype.itemsize
        if count == self.shape[0]:
            return self._read(columns * count * size).view(self.dtype)
        columns_read = np.empty((columns, count), self.dtype)
        for column in columns_read:
            column[:] = self._read(count * size).view(self.dtype)
            self._skip((self.shape[0] - count) * size)
        return columns_read

    def _read(self, size: int) -> Array:
        raw = np.empty(size, np.uint8)
        for start in range(0, size, PIECE):
            part = raw[start : start + PIECE]
            with damage_refused(self.name):
                piece = self.file.read(len(part))
            if len(piece) != len(part):
                at = start + len(piece)
                raise DataError(
                    f"{self.name} is cut off: {size} bytes are read, it ends after {at}"
                )
            part[:] = np.frombuffer(piece, np.uint8)
        return raw

    def _skip(self, size: int) -> None:
        """Pass over bytes; in an archive they have to be read."""
        if isinstance(self.file, io.BufferedReader):
            self.file.seek(size, io.SEEK_CUR)
            return
        while size > 0:
            with damage_refused(self.name):
                skipped = len(self.file.read(min(size, PIECE)))
            size = size - skipped if skipped else 0


def read_header(file: IO[bytes], size: int, name: str) -> NpyArray:
    """Read the header of the array that a file of ``size`` bytes holds.

    Raises DataError where there is none, for Python objects, and where there are fewer bytes than
    the header says.
    """
    with damage_refused(name):
        shape, by_columns, dtype = _header(file, name)
    if dtype.hasobject:
        raise DataError(f"{name} holds Python objects (pickles), which are programs: not read")
    if len(shape) > MOST_AXES or any(not 0 <= extent < 2**63 for extent in shape):
        raise DataError(f"{name} is damaged: no array has the shape that its header says")
    needed, present = element_count(shape) * dtype.itemsize, size - file.tell()
    if needed > present:
        text = shorten(f"{dtype} {shape_text(shape)}")
        raise DataError(f"{name} is cut off: {text} is {needed} bytes, found {present}")
    return NpyArray(name, shape, dtype, by_columns, file)


def _header(file: IO[bytes], name: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    start = file.read(8)
    if not start.startswith(MAGIC):
        raise DataError(f"{name} does not begin as a .npy file does")
    width = 2 if start[6:] == b"\1\0" else 4
    length = int.from_bytes(file.read(width), "little")
    if length > _LONGEST_HEADER:
        raise DataError(
            f"{name} has a header of {length} bytes, at most {_LONGEST_HEADER} are read"
        )
    # read by NumPy as a header of version 1.0: the others differ in the width of the length alone
    text = io.BytesIO(length.to_bytes(2, "little") + file.read(length))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of what Python 2 wrote
        shape, by_columns, dtype = np.lib.format.read_array_header_1_0(text)
    return tuple(map(int, shape)), bool(by_columns), dtype
