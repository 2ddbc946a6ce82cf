"""GATHER kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, ShapeError
from luciole.ir.ops.gather import Gather, gathered, places
from luciole.ir.rules import settled
from luciole.kernels.registry import ANY, reference


@reference(Gather, *ANY)
def gather(op: Gather, params: Array, indices: Array) -> Array:
    """Pick along the axis, one batch after the other."""
    along, batch = places(op, params.ndim, indices.ndim)
    result = np.empty(settled(gathered(params.shape, indices.shape, along, batch)), params.dtype)
    _check(indices, along, params.shape[along])
    for b in np.ndindex(*indices.shape[:batch]):
        result[b] = np.take(params[b], indices[b], axis=along - batch)
    return result


def _check(indices: Array, along: int, n: int) -> None:
    """Raise ShapeError for the first index that names no element."""
    wrong = indices[(indices < 0) | (indices >= n)]
    if wrong.size:
        raise ShapeError(f"index {wrong.flat[0]} is out of range: axis {along} has {n} elements")
