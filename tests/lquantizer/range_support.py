"""Ranges of numbers that were seen, and batches to see."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from luciole.lquantizer.calibration.seen import Seen

Batch = NDArray[np.float32]


def watched(*batches: Batch) -> Seen:
    seen = Seen()
    for batch in batches:
        seen.add(batch)
    return seen


def normal(seed: int, *shape: int) -> Batch:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)
