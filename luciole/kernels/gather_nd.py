"""GATHER_ND kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array
from luciole.ir.ops.gather_nd import GatherNd
from luciole.kernels.arrays.coordinates import columns
from luciole.kernels.core.limits import affordable
from luciole.kernels.core.registry import ANYTHING, reference


@reference(GatherNd, *ANYTHING)
def gather_nd(op: GatherNd, params: Array, indices: Array) -> Array:
    """Read the elements at all coordinates at once."""
    places = columns(indices, params.shape, "params")
    shape = affordable(op, (*indices.shape[:-1], *params.shape[len(places) :]))
    if not places:
        return np.broadcast_to(params, shape).copy()
    return np.asarray(params[places], params.dtype).reshape(shape)
