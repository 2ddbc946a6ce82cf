"""Lay tensors out in one block of memory, in which places are used again.

What lasts for good lies below. Of the rest the largest come first, each at the lowest place that is
free for its lifetime: "greedy by size" of Pisarchyk and Lee, "Efficient Memory Management for Deep
Neural Net Inference" (2020), section 5.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from luciole.ir.analysis.lifetimes import Lifetime
from luciole.ir.errors import GraphError
from luciole.ir.value import Value

_MOST_BYTES = 2**62
"""Sums of two offsets then fit into 64 bits."""


class Place(NamedTuple):
    """Bytes of a block: from ``begin`` to before ``end``."""

    begin: int
    end: int


@dataclass(frozen=True)
class Layout:
    """Where tensors lie in a block of ``size`` bytes.

    ``places`` are in the order in which they were found; those of ``shared``, which stand in the
    place of another tensor, come last. What is ``overwritten`` by a later tensor cannot be read
    after a run.
    """

    places: Mapping[Value, Place]
    size: int
    shared: Mapping[Value, Value]
    overwritten: frozenset[Value]


def lay_out(
    lives: Mapping[Value, Lifetime],
    sizes: Mapping[Value, int],
    shared: Mapping[Value, Value],
    alignment: int,
) -> Layout:
    """Find a place for each tensor of ``sizes``, in bytes: at a multiple of ``alignment`` bytes,
    and apart from all that live while it does. ``shared`` tensors get that of the other tensor.

    Raises GraphError for more than 2**62 bytes together.
    """
    rounded = [aligned(size, alignment) for size in sizes.values()]
    if sum(rounded) > _MOST_BYTES:
        raise GraphError(f"tensors take {sum(rounded)} bytes, at most {_MOST_BYTES} are possible")
    values, packing = list(sizes), _Packing([lives[value] for value in sizes], rounded)
    begins: list[int] = packing.begin.tolist()
    places = {values[i]: Place(begins[i], begins[i] + sizes[values[i]]) for i in packing.order}
    guests = {value: host for value, host in shared.items() if host in places}
    spoiled = {values[i] for i in packing.overwritten()}
    return Layout(
        places | {value: places[host] for value, host in guests.items()},
        int(packing.end.max(initial=0)),
        guests,
        frozenset(spoiled | {value for value, host in guests.items() if host in spoiled}),
    )


def aligned(size: int, alignment: int) -> int:
    """Find the least multiple of ``alignment`` that is not below ``size``."""
    return -(-size // alignment) * alignment


class _Packing:
    """Places given so far, as rows: when they are needed, and from which byte to which."""

    def __init__(self, lives: Sequence[Lifetime], sizes: Sequence[int]) -> None:
        rows: NDArray[np.int64] = np.array(lives, np.int64).reshape(-1, 2)
        self.first, self.last = rows[:, 0], rows[:, 1]
        self.begin, self.end = np.zeros((2, len(lives)), np.int64)
        # inputs and variables meet all others: looking for gaps gains nothing
        lasts = (self.first == self.first.min(initial=0)) & (self.last == self.last.max(initial=0))
        self.lasting: list[bool] = lasts.tolist()
        self.floor = 0
        self.order = sorted(range(len(sizes)), key=lambda i: (not self.lasting[i], -sizes[i]))
        for i in self.order:
            self._place(i, sizes[i])

    def _place(self, i: int, size: int) -> None:
        """Give tensor ``i`` the lowest gap between tensors that live while it does. Those that last
        for good come first, one above the other.
        """
        self.begin[i] = self.floor if self.lasting[i] else self._gap(i, size)
        self.end[i] = self.begin[i] + size
        if self.lasting[i]:
            self.floor += size

    def _gap(self, i: int, size: int) -> int:
        met = self.end > self.floor
        met &= (self.first <= self.last[i]) & (self.last >= self.first[i])
        begin, end = self.begin[met], self.end[met]
        order = np.argsort(begin, kind="stable")
        free = np.concatenate([[self.floor], np.maximum.accumulate(end[order])])
        fits = np.append(begin[order] - free[:-1] >= size, True)
        return int(free[np.argmax(fits)])

    def overwritten(self) -> Iterator[int]:
        """List tensors that share bytes with one that is written later."""
        for i in range(len(self.begin)):
            later = (self.first > self.last[i]) & (self.begin < self.end[i])
            if not self.lasting[i] and np.any(later & (self.end > self.begin[i])):
                yield i
