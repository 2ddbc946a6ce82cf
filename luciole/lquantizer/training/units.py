"""Measure how large numbers are: learning rates count in that, in units that are about 1 in the
network that the usual rates are from.
"""

from __future__ import annotations

import math

import numpy as np

from luciole.ir import Array

_MEAN_WEIGHT = 0.05


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


def of_weights(means: Array) -> Array:
    """Make units of weights of the given mean sizes."""
    return means / np.float32(_MEAN_WEIGHT)


def of_sums(means: Array, count: int, reach: float = 1.0) -> Array:
    """Make units of sums of ``count`` products of a weight and half an input's ``reach``."""
    units: Array = np.float32(math.sqrt(count)) * means * np.float32(reach / 2)
    return units
