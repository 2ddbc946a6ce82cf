"""SCATTER_ND kernels."""

from __future__ import annotations

import math

import numpy as np

from luciole.ir import Array
from luciole.ir.ops.scatter_nd import ScatterNd, check_updates
from luciole.ir.rules import integers
from luciole.kernels.arrays.coordinates import columns
from luciole.kernels.core.limits import affordable
from luciole.kernels.core.registry import ANY, reference


@reference(ScatterNd, *ANY)
def scatter_nd(op: ScatterNd, indices: Array, updates: Array, shape: Array) -> Array:
    """Add updates of one place in their order, integers without saturation."""
    extents = integers(shape, "shape")
    check_updates(indices.shape, updates.shape, extents)
    y = np.zeros(affordable(op, extents), updates.dtype)
    places = columns(indices, extents, "the result")
    if places:
        np.add.at(y, places, updates)
        return y
    every = updates.reshape(math.prod(indices.shape[:-1]), *extents)
    return np.asarray(np.add.reduce(every, axis=0, dtype=y.dtype))
