"""Search the range of a tensor in which the least is lost."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from luciole.lquantizer.formats.affine import Range

Floats = NDArray[np.float64]
Losses = Callable[[Floats], Floats]
"""The losses [n] between pairs of limits [n, 2]."""

SHARES = np.linspace(0.2, 1, 41)
"""Shares of a range that are tried."""


def least_lossy(extremes: Range, losses: Losses, shares: Floats = SHARES) -> Range:
    """Return the range of the least loss among shares of both extremes, 0 within."""
    ends = np.array([min(extremes[0], 0.0), max(extremes[1], 0.0)])
    best = np.ones(2)
    for side in _sides(ends):  # each side by itself, the other as it was left
        tried = np.tile(best, (len(shares), 1))
        tried[:, side] = shares
        best[side] = shares[int(np.argmin(losses(ends * tried)))]
    low, high = (ends * best).tolist()
    return low, high


def _sides(ends: Floats) -> list[int]:
    """List the sides to search, twice where each depends on the other."""
    present = np.flatnonzero(ends).tolist()
    return present * 2 if len(present) > 1 else present
