"""STABLEHLO_SCATTER kernels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array
from luciole.ir.ops.stablehlo_scatter import StablehloScatter, check_scatter
from luciole.kernels.arrays.bodies import function_of
from luciole.kernels.core.registry import reference
from luciole.kernels.stablehlo_elementwise import NUMBERS


@reference(StablehloScatter, *NUMBERS)
def stablehlo_scatter(op: StablehloScatter, x: Array, indices: Array, updates: Array) -> Array:
    """Combine the updates that lie inside with the elements that they meet, in their order."""
    check_scatter(op, x.shape, indices.shape, updates.shape)
    function, y = function_of(op.update_computation), x.copy()
    places = list(_places(op, indices, updates.shape, x.ndim))
    inside = np.ones(updates.shape, np.bool_)
    for place, extent in zip(places, x.shape, strict=True):
        inside &= (place >= 0) & (place < extent)
    met = tuple([np.broadcast_to(place, updates.shape)[inside] for place in places])
    if function is None:
        y[met] = updates[inside]
    else:
        function.at(y, met, updates[inside])
    return y


def _places(
    op: StablehloScatter, indices: Array, shape: tuple[int, ...], rank: int
) -> Iterator[NDArray[np.int64]]:
    """Yield where updates meet the input along each of its axes, in shapes that stretch to theirs:
    where their window begins, and how far they are from there.
    """
    along = list(op.update_window_dims)
    batch = [1 if axis in along else n for axis, n in enumerate(shape)]
    for axis in range(rank):
        place = np.zeros([1] * len(shape), np.int64)
        if axis in op.scatter_dims_to_operand_dims:
            entry = op.scatter_dims_to_operand_dims.index(axis)
            place = place + _entries(op, indices, entry).reshape(batch)
        if axis not in op.inserted_window_dims:
            window = along[axis - sum(n < axis for n in op.inserted_window_dims)]
            apart = [-1 if n == window else 1 for n in range(len(shape))]
            place = place + np.arange(shape[window]).reshape(apart)
        yield place


def _entries(op: StablehloScatter, indices: Array, entry: int) -> NDArray[np.int64]:
    """Take an entry of all vectors of indices."""
    alone = op.index_vector_dim == indices.ndim
    taken = indices if alone else np.take(indices, entry, op.index_vector_dim)
    return taken.astype(np.int64)
