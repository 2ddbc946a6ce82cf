"""Borders around tensors, as slabs for compiled kernels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from luciole.ir import Array
from luciole.kernels.core.allocation import placed


def inside(shape: Sequence[int], borders: Sequence[tuple[int, int]]) -> tuple[slice, ...]:
    """Return the slices of a tensor within its borders, ``shape`` being the extents of the part
    within.
    """
    return tuple(slice(b, b + n) for n, (b, _) in zip(shape, borders, strict=True))


def slabs(
    whole: Array, within: tuple[slice, ...], value: Array
) -> tuple[list[tuple[Array, Array]], list[Array]]:
    """Cover the surroundings of a box by disjoint views, each with the array to copy into it;
    return these pairs and the arrays that hold what is copied. The box's slices have a start and a
    stop along all axes they cut.
    """
    moved, owns = [], []
    for axis, cut in enumerate(within):
        start, stop, _ = cut.indices(whole.shape[axis])
        for beside in (slice(0, start), slice(stop, None)):
            slab = whole[(*within[:axis], beside)]
            owns.append(placed(np.full(slab.shape[axis:], value)))
            moved.append((slab, np.broadcast_to(owns[-1], slab.shape)))
    return moved, owns
