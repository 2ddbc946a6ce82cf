"""Arrays that a page may ask for: in a single file up to a limit, fetched on demand when served."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from luciole.ir import Array

MOST_BYTES = 500_000
"""Bytes of one array that a single file embeds."""

MOST_TOTAL = 6_000_000
"""Bytes of all arrays together that a single file embeds, in the order in which they were added:
pages are sent by mail, and few arrays are looked at.
"""

MOST_ASKED = 300_000_000
"""Most bytes in all where a user asked for arrays: four thirds of it are a size that browsers still
read.
"""

_KINDS = {"f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1"}


T = TypeVar("T")


class _Blob(NamedTuple):
    """An array to be: how large it is, and who makes it."""

    size: int
    make: Callable[[], Array]


class Blobs:
    """Arrays by number, from a first one on, each as little-endian bytes."""

    def __init__(self, first: int = 0) -> None:
        self._first = first
        self._blobs: list[_Blob] = []
        self._made: dict[Hashable, Any] = {}

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Make something of a constant's bytes, only once however many tensors share them."""
        if key not in self._made:
            self._made[key] = make()
        made: T = self._made[key]
        return made

    def add(self, array: Array) -> dict[str, Any] | None:
        """Keep an array; how the page speaks of it: number, type, shape. None for a type that pages
        cannot show (complex numbers).
        """
        kind = array.dtype.str[1:]
        return self.later(kind, array.shape, lambda: array) if kind in _KINDS else None

    def later(self, kind: str, shape: tuple[int, ...], make: Callable[[], Array]) -> dict[str, Any]:
        """Add an array that is made when asked for; ``kind`` is ``f4``, ``i1``, ..."""
        size = math.prod(shape) * int(kind[1:])
        self._blobs.append(_Blob(size, make))
        return {"blob": self.numbers[-1], "type": kind, "shape": list(shape), "bytes": size}

    def __len__(self) -> int:
        return len(self._blobs)

    @property
    def numbers(self) -> range:
        """Return the numbers that there are."""
        return range(self._first, self._first + len(self._blobs))

    def content(self, number: int) -> bytes:
        """Return the bytes of an array. Raises IndexError for a number that there is not."""
        if number not in self.numbers:
            raise IndexError(f"there is no array {number}")
        with np.errstate(all="ignore"):
            array = self._blobs[number - self._first].make()
        return np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()

    def embedded(self, most: int | None = None) -> dict[str, str]:
        """Encode the arrays of a single file: base64 by number, arrays of up to ``most`` bytes, as
        far as the limit for all goes: the usual one, or a larger one where ``most`` is asked for.
        """
        limit = MOST_TOTAL if most is None else MOST_ASKED
        most = MOST_BYTES if most is None else most
        encoded, total = {}, 0
        for number, blob in zip(self.numbers, self._blobs, strict=True):
            if blob.size <= most and total + blob.size <= limit:
                total += blob.size
                encoded[str(number)] = base64.b64encode(self.content(number)).decode("ascii")
        return encoded
