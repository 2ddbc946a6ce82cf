"""Measure how large numbers are: learning rates count in that."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array


def sizes(array: Array, axis: int) -> Array:
    """Average how large the numbers of each channel are, float32, in a shape that broadcasts: axes
    of 1 but for that of the channels [o]. A channel of zeros takes the others' mean, 1 where all
    are.

    Channels want units of their own: equalized ones can be a thousand times larger than their
    neighbours (an autoencoder with one bit: an error of 0.196 instead of 0.208).
    """
    others = tuple(i for i in range(array.ndim) if i != axis % array.ndim)
    means: Array = np.abs(array).mean(others, dtype=np.float64, keepdims=True)
    used = means > 0
    means[~used] = means[used].mean() if used.any() else 1.0
    return means.astype(np.float32)
