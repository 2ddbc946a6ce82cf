"""Records that are read when they are asked for: some of an array's, which may lie in a file, and
in the type that an input has.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from luciole.ir import Array
from luciole.ir.dtypes import byte_bounds

Convert = Callable[[Array], Array]
"""Brings records [records, ...] into the type that an input has."""
Places = NDArray[np.intp]


class Samples(Protocol):
    """Records [records, ...]: an array, or what is read like one, a part at a time."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents, the number of records in front."""

    def __len__(self) -> int:
        """Return the number of records."""

    def __getitem__(self, key: int | slice | Places, /) -> Any:
        """Return one record, or samples of some."""

    def __array__(self) -> Array:
        """Read all of them."""


@dataclass(frozen=True, eq=False)
class Selection:
    """Records at some ``places`` of an array, converted when they are read. A part of them is a
    selection again, so that nothing is copied until then.
    """

    whole: Array
    places: Places
    convert: Convert | None = None

    @classmethod
    def of(cls, samples: Samples, places: Places) -> Selection:
        """Select records of others."""
        if isinstance(samples, Selection):
            return cls(samples.whole, samples.places[places], samples.convert)
        return cls(np.asarray(samples), places)

    @classmethod
    def all(cls, whole: Array, convert: Convert | None = None) -> Selection:
        """Select all records of an array."""
        return cls(whole, np.arange(len(whole)), convert)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type."""
        return self._read(self.places[:0]).dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents, the number of records in front."""
        return (len(self.places), *self.whole.shape[1:])

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.places)

    def __getitem__(self, key: int | slice | Places, /) -> Any:
        """Read one record, or select some."""
        if isinstance(key, slice | np.ndarray):
            return Selection(self.whole, self.places[key], self.convert)
        return self._read(self.places[key : key + 1])[0]

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        """Read all of them."""
        read = self._read(self.places)
        return read if dtype is None else read.astype(dtype, copy=False)

    def _read(self, places: Places) -> Array:
        """Read records into memory of their own."""
        read = np.asarray(self.whole[places])
        if len(places):
            release(self.whole[places.min() : places.max() + 1])
        return read if self.convert is None else self.convert(read)


def file_of(array: Array) -> np.memmap[Any, Any] | None:
    """Return the mapped file that an array lies in, None where it lies in memory."""
    root: Any = array
    while isinstance(root, np.ndarray) and not isinstance(root.base, mmap.mmap):
        root = root.base
    return root if isinstance(root, np.memmap) else None


def release(array: Array) -> None:
    """Free the memory of an array in a mapped file, which is read again when it is asked for; other
    arrays, and private copies of files, stay in memory.
    """
    file = file_of(array)
    if file is None or file.mode == "c" or not hasattr(mmap, "MADV_DONTNEED"):
        return
    begin = file.ctypes.data - file.offset % mmap.ALLOCATIONGRANULARITY
    first, last = (address - begin for address in byte_bounds(array))
    first -= first % mmap.PAGESIZE
    pages: Any = file.base
    pages.madvise(mmap.MADV_DONTNEED, first, last - first)
