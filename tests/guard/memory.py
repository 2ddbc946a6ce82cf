"""Memory whose neighbours nobody may touch: one byte too many ends the process.

Every array lies at an end of pages of its own, without a gap. That is the first multiple of its
elements' size; 64 bytes, which the bit-sliced kernel relies on, are a row of what it reads.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence

import numpy as np

from luciole.ir import Array
from luciole.kernels.core.allocation import Allocator, Bytes, use

PAGE = mmap.PAGESIZE
ENDS = ("before", "behind")
"""Where the page lies that nobody may touch."""

SURROUNDINGS = 256
"""Bytes."""

_NOTHING = 0
"""PROT_NONE."""

_protect = ctypes.CDLL(None, use_errno=True).mprotect
_protect.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int


class Guard(Allocator):
    """Every array for itself, in front of or behind a page without access."""

    def __init__(self, end: str) -> None:
        if end not in ENDS:
            raise ValueError(f"a guard stands before or behind arrays, not {end!r}")
        self.is_behind = end == "behind"

    def zeros(self, size: int) -> Bytes:
        """So many bytes at an end of their pages; they are given back with the last view."""
        room = -(-size // PAGE) * PAGE
        flat = np.frombuffer(mmap.mmap(-1, room + PAGE, mmap.MAP_PRIVATE), np.uint8)
        address = flat.ctypes.data + (room if self.is_behind else 0)
        if _protect(address, PAGE, _NOTHING):
            raise OSError(ctypes.get_errno(), "a page cannot be protected")
        begin = room - size if self.is_behind else PAGE
        return flat[begin : begin + size]

    def block(self, size: int, places: Sequence[tuple[int, int]]) -> list[Bytes]:
        """No block: each place for itself."""
        return [self.zeros(end - begin) for begin, end in places]

    def given(self, array: Array) -> Array:
        """A copy: what lies around a constant in its file is no concern of a kernel."""
        copy = self.copy(array)
        copy.flags.writeable = False
        return copy

    def copy(self, array: Array) -> Array:
        """The same elements at an end of their pages."""
        place = self.zeros(array.nbytes).view(array.dtype).reshape(array.shape)
        place[...] = array
        return place


class Poison(Allocator):
    """Around every array lie bytes that are NaN as floats: who reads them gives himself away."""

    def zeros(self, size: int) -> Bytes:
        """So many bytes with some lines of poison before and behind."""
        room = np.full(2 * SURROUNDINGS + size, 0xFF, np.uint8)
        inside = room[SURROUNDINGS : SURROUNDINGS + size]
        inside[...] = 0
        return inside


def watch(end: str) -> None:
    """Let this process guard everything that compiled kernels touch, from now on."""
    use(Guard(end))
