"""Memory that compiled kernels touch: all of it is taken here, so that tests can watch its ends."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array

ALIGNMENT = 64
"""Bytes: one line of the cache, one AVX-512 register."""

SMALL, SHELF = 1 << 10, 1 << 15
"""Bytes of an array that shares a shelf with others, and of a shelf."""

Bytes = NDArray[np.uint8]


def _aligned(size: int) -> Bytes:
    room = np.zeros(size + ALIGNMENT, np.uint8)
    start = -room.ctypes.data % ALIGNMENT
    return room[start : start + size]


class _Shelf:
    """Small arrays, one behind the other."""

    def __init__(self) -> None:
        self._left = np.zeros(0, np.uint8)

    def zeros(self, size: int) -> Bytes:
        """Take the next bytes, at a multiple of ALIGNMENT."""
        step = -(-size // ALIGNMENT) * ALIGNMENT
        if step > len(self._left):
            self._left = _aligned(SHELF)
        taken, self._left = self._left[:size], self._left[step:]
        return taken


_SHELF: ContextVar[_Shelf | None] = ContextVar("where small arrays stand together", default=None)

_Packed = dict[Hashable, tuple[Array, Array]]
_PACKED: ContextVar[_Packed | None] = ContextVar(
    "constants, and what is packed of them", default=None
)


@contextmanager
def side_by_side() -> Iterator[None]:
    """Take small arrays from one place inside of the ``with`` statement, and pack constants once
    for all steps that read them.

    What the steps of a plan point into is read in turn. Each record between other arrays costs a
    page and a line that no prefetcher foresees: 7 % of a network that takes 3 us.
    """
    tokens = _SHELF.set(_Shelf()), _PACKED.set({})
    try:
        yield
    finally:
        _SHELF.reset(tokens[0])
        _PACKED.reset(tokens[1])


def packed(source: Array, form: Hashable, pack: Callable[[], Array]) -> Array:
    """Return the array that ``pack`` makes of a constant where kernels may touch it: one array for
    all steps of a plan that need the constant in that form, such as those of an unrolled recurrent
    layer, whose weights then stay in the cache.
    """
    known = _PACKED.get()
    key = (source.ctypes.data, source.shape, source.strides, source.dtype.str, form)
    if known is not None and key in known:
        return known[key][1]
    array = placed(pack())
    if known is not None:
        known[key] = source, array  # the source, too: nothing else gets its address meanwhile
    return array


class Allocator:
    """Takes memory from NumPy. Tests put another one in its place, see ``use``."""

    def zeros(self, size: int) -> Bytes:
        """Take zeroed bytes, at a multiple of ALIGNMENT where kernels are to be fast."""
        shelf = _SHELF.get()
        return _aligned(size) if shelf is None or size > SMALL else shelf.zeros(size)

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
