"""Arrays that a compiled kernel's record points into."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

import numpy as np

from luciole.ir import Array
from luciole.kernels.sizes import room

ALIGNMENT = 64
"""Bytes: a line of the cache, and the widest vector."""


@dataclass
class Memory:
    """Aligned copies of arrays, kept alive together."""

    arrays: list[Array] = field(default_factory=list)

    def keep(self, array: Array) -> int:
        """The address of a copy at a multiple of ALIGNMENT."""
        room = np.zeros(array.nbytes + ALIGNMENT, np.uint8)
        start = -room.ctypes.data % ALIGNMENT
        place = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
        place[...] = array
        self.arrays.append(place)
        return int(place.ctypes.data)

    def record(self, *numbers: int) -> int:
        """The address of a record of numbers."""
        return self.keep(np.array(numbers, np.int64))

    def scratch(self, *shape: int) -> int:
        """The address of words that a kernel writes and reads again, 0 at first.

        Raises ExecutionError when they take more than a kernel may.
        """
        room(4 * prod(shape), "what a compiled kernel writes for itself")
        return self.keep(np.zeros(shape, np.uint32))
