"""Transposed convolutions of integers as convolutions: results whose positions leave the same rest
when divided by the strides (a phase) are one with every stride-th tap, backwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array
from luciole.ir.rules import padding_before
from luciole.kernels.core.errors import ExecutionError
from luciole.kernels.layers.geometry.spans import Axis
from luciole.kernels.layers.int8.byte_layer import Side
from luciole.schema.enums import Padding

Taps = NDArray[np.intp]


class Half(NamedTuple):
    """One axis of a phase: windows of padded inputs, and the filter's taps in their order."""

    side: Side
    taps: Taps


@dataclass(frozen=True)
class Phase:
    """Results of some rows and columns."""

    rows: Side
    columns: Side
    down: Taps
    across: Taps

    def own(self, weights: Array, zeros: Array) -> Array:
        """Take the phase's weights of [1, o, kernel height, kernel width, depth]: one of the zero
        points where it has no tap.
        """
        if not (len(self.down) and len(self.across)):
            one = (*weights.shape[:2], 1, 1, weights.shape[-1])
            return np.broadcast_to(zeros, one).astype(weights.dtype)
        return np.ascontiguousarray(weights[:, :, self.down[:, None], self.across])


def phases(
    x: Array, filter: Array, y: Array, stride: tuple[int, int], padding: Padding
) -> list[Phase]:
    """Cut the result of a filter [o, height, width, depth] over NHWC images into phases. Raises
    ExecutionError for images of another depth, beyond which kernels would read.
    """
    if x.shape[3] != filter.shape[3]:
        raise ExecutionError(f"a filter of depth {filter.shape[3]} over {x.shape[3]} channels")
    rows, columns = (
        _halves(*sizes, padding)
        for sizes in zip(x.shape[1:3], y.shape[1:3], filter.shape[1:3], stride, strict=True)
    )
    return [Phase(_side(r, c), _side(c, r), r.taps, c.taps) for r, c in product(rows, columns)]


def _side(half: Half, other: Half) -> Side:
    """Return a half's side; windows without a tap along the other axis are of one input."""
    return half.side if len(other.taps) else _of_one(half.side)


@lru_cache(1024)
def _of_one(side: Side) -> Side:
    """Shorten windows to their first input."""
    old = side.padded
    count = np.ones_like(old.count)
    padded = Axis(old.size, 1, 1, 1, old.first, count, old.start, old.places, old.whole)
    return Side(side.size, side.before, padded)


@lru_cache(1024)
def _halves(
    size: int, outputs: int, kernel: int, stride: int, padding: Padding
) -> tuple[Half, ...]:
    """Return the axis of each phase that has results; all look at one padded copy."""
    before = padding_before(outputs, kernel, stride, 1, padding)
    margin = max(kernel - 1, 0) // stride
    extent = margin + max(size, (outputs - 1 + before) // stride + 1)
    halves = []
    for phase in range(stride):
        places = np.flatnonzero((np.arange(outputs) + before) % stride == phase)
        if len(places):
            taps = np.arange(phase, kernel, stride)[::-1]
            window = max(len(taps), 1)
            start = (places + before) // stride + margin - (window - 1)
            first, count = np.zeros_like(places), np.full_like(places, window)
            axis = Axis(extent, window, 1, 1, first, count, start, places, outputs)
            halves.append(Half(Side(size, margin, axis), taps))
    return tuple(halves)
