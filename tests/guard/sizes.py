"""Extents at which compiled kernels change from one loop to another, or leave something over."""

from __future__ import annotations

import numpy as np

from luciole.schema.enums import Padding
from tests.fuzz.shapes import Hints, Sizes

ODD = (1, 3, 7, 15, 17, 31, 33, 63, 65, 127, 129)
"""Around the elements of vectors, bytes, words and lines of the cache."""

LONG = (257, 513, 1025)
"""Beyond what kernels add up in one go, or choose another way for."""

MOST_BATCH = 5
MOST_STEP = 3
"""Of strides and dilations."""

ROOM = 1 << 17
"""What all extents of a model multiply to at most."""

ROOM_OF_TENSOR = 1 << 14
"""The same of a single shape."""


class OddSizes(Sizes):
    """Odd extents, as long as a model stays one that NumPy computes in milliseconds."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__(rng)
        self._left = ROOM

    def extent(self, most: int) -> int:
        """Any of ``ODD``, now and then of ``LONG``, or none, whatever is usual."""
        kind = self.rng.random()
        if kind < 0.02:
            return 0
        some = LONG if kind < 0.1 and self._left >= LONG[0] else ODD
        chosen = int(self.rng.choice([n for n in some if n <= self._left]))
        self._left //= chosen
        return chosen

    def batch(self, most: int) -> int:
        """1 to 5."""
        chosen = self.upto(MOST_BATCH)
        self._left = max(self._left // chosen, 1)
        return chosen

    def has_handles(self) -> bool:
        """Kernels that move elements take any."""
        return False

    def near(self, extent: int) -> int:
        """A little less or more."""
        return max(extent + int(self.rng.integers(-2, 3)), 1)

    def shape(self) -> tuple[int, ...]:
        """Up to five axes."""
        self._left = ROOM_OF_TENSOR
        return tuple(self.extent(1) for _ in range(int(self.rng.integers(6))))

    def windows(self) -> Hints:
        """Every padding, stride and dilation alike."""
        names = ("stride_w", "stride_h", "dilation_w_factor", "dilation_h_factor")
        steps = {name: self.upto(MOST_STEP) for name in names}
        if self.rng.random() < 0.5:
            steps |= dict.fromkeys(names[2:], 1)  # faster kernels know no dilation
        return {"padding": Padding(int(self.rng.integers(2))), **steps}
