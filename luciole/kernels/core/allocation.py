"""Memory that compiled kernels touch: all of it is taken here, so that tests can watch its ends."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array

ALIGNMENT = 64
"""Bytes: one line of the cache, one AVX-512 register."""

Bytes = NDArray[np.uint8]


class Allocator:
    """Takes memory from NumPy. Tests put another one in its place, see ``use``."""

    def zeros(self, size: int) -> Bytes:
        """Take zeroed bytes, at a multiple of ALIGNMENT where kernels are to be fast."""
        room = np.zeros(size + ALIGNMENT, np.uint8)
        start = -room.ctypes.data % ALIGNMENT
        return room[start : start + size]

    def block(self, size: int, places: Sequence[tuple[int, int]]) -> list[Bytes]:
        """Take zeroed bytes for each place (from, to before) in a block of that size."""
        whole = self.zeros(size)
        return [whole[begin:end] for begin, end in places]

    def given(self, array: Array) -> Array:
        """Return a constant of a model where kernels may read it: where it is."""
        return array


_chosen = Allocator()


def chosen() -> Allocator:
    """Return the allocator in use."""
    return _chosen


def use(allocator: Allocator) -> Allocator:
    """Take memory from another allocator from now on; returns the one before."""
    global _chosen
    before, _chosen = _chosen, allocator
    return before


def placed(array: Array) -> Array:
    """Copy an array to memory that kernels may touch."""
    place = chosen().zeros(array.nbytes).view(array.dtype).reshape(array.shape)
    place[...] = array
    return place
