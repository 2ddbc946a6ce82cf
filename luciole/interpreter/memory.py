"""Where tensors live while a model runs: one block, in which places are used again.

What lasts for good lies below. Of the rest the largest come first, each at the lowest place that is
free for its lifetime: "greedy by size" of Pisarchyk and Lee, "Efficient Memory Management for Deep
Neural Net Inference" (2020), section 5.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from luciole.interpreter.lifetimes import Lifetime
from luciole.ir import Array, Value
from luciole.ir.dtypes import NUMPY
from luciole.ir.value import element_count, impossible, shape_text
from luciole.kernels.core import allocation
from luciole.kernels.core.allocation import ALIGNMENT
from luciole.kernels.core.errors import MemoryLimitError as MemoryLimitError


@dataclass(frozen=True)
class Memory:
    """Zeroed arrays for tensors, the size of the block that holds them in bytes, and the tensors
    whose place a later one takes, so that they cannot be read after a run.
    """

    arrays: dict[Value, Array]
    size: int
    overwritten: frozenset[Value]


def allocate(lives: Mapping[Value, Lifetime], limit: int) -> Memory:
    """A place for each tensor, at a multiple of 64 bytes.

    Raises MemoryLimitError before anything is taken when they need more than ``limit`` bytes
    together.
    """
    values = [v for v in lives if v.dtype in NUMPY]
    sizes = [_byte_count(value) for value in values]
    _check_limit(values, sizes, limit)
    layout = _Layout(np.array([lives[v] for v in values], np.int64).reshape(-1, 2))
    for i in sorted(range(len(values)), key=lambda i: (not layout.lasting[i], -sizes[i])):
        layout.place(i, sizes[i])
        _check_limit([values[i]], [int(layout.end[i])], limit)
    size = int(layout.end.max(initial=0))
    places = [(int(at), int(at) + _bytes(v)) for at, v in zip(layout.begin, values, strict=True)]
    rooms = zip(values, allocation.chosen().block(size, places), strict=True)
    arrays = {v: room.view(NUMPY[v.dtype]).reshape(v.dims) for v, room in rooms}
    return Memory(arrays, size, frozenset(values[i] for i in layout.overwritten()))


class _Layout:
    """Places given so far, as rows: when they are needed, and from which byte to which."""

    def __init__(self, lives: NDArray[np.int64]) -> None:
        self.first, self.last = lives[:, 0], lives[:, 1]
        self.begin = np.zeros(len(lives), np.int64)
        self.end = np.zeros(len(lives), np.int64)
        # inputs and variables meet all others: looking for gaps gains nothing
        lasts = (self.first == self.first.min(initial=0)) & (self.last == self.last.max(initial=0))
        self.lasting: list[bool] = lasts.tolist()
        self.floor = 0

    def place(self, i: int, size: int) -> None:
        """Give tensor ``i`` the lowest gap between those that live while it does. Those that last
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

    def overwritten(self) -> list[int]:
        """Tensors that share bytes with one that is written later."""
        return [
            i
            for i in range(len(self.begin))
            if not self.lasting[i]
            and np.any(
                (self.first > self.last[i])
                & (self.begin < self.end[i])
                & (self.end > self.begin[i])
            )
        ]


def _bytes(value: Value) -> int:
    return element_count(value.dims) * NUMPY[value.dtype].itemsize


def _byte_count(value: Value) -> int:
    return -(-_bytes(value) // ALIGNMENT) * ALIGNMENT


def _hidden(value: Value) -> int:
    """Bytes that an extent of 0 hides: what is computed on the way to nothing may need them."""
    return element_count(tuple(max(n, 1) for n in value.dims)) * NUMPY[value.dtype].itemsize


def _check_limit(values: list[Value], ends: list[int], limit: int) -> None:
    for value, end in zip(values, ends, strict=True):
        if max(end, _hidden(value)) > limit or impossible(value.dims, ALIGNMENT):
            raise MemoryLimitError(
                f"tensor {value.name!r} {shape_text(value.shape)} needs memory "
                f"beyond the limit of {limit} bytes: "
                "raise memory_limit if the model is to be trusted"
            )
