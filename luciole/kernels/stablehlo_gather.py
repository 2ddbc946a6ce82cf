"""STABLEHLO_GATHER kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array
from luciole.ir.ops.stablehlo_gather import StablehloGather, gathered
from luciole.ir.rules import settled
from luciole.kernels.core.limits import affordable
from luciole.kernels.core.registry import ANY, reference


@reference(StablehloGather, *ANY)
def stablehlo_gather(op: StablehloGather, x: Array, indices: Array) -> Array:
    """Read all slices at once, and bring their axes to their places."""
    shape = affordable(op, settled(gathered(op, x.shape, indices.shape)))
    starts = _starts(op, x.shape, indices)
    batch = starts.ndim - 1
    picked = x[_places(op, starts)]
    collapsed = tuple(batch + axis for axis in op.collapsed_slice_dims)
    y = np.asarray(picked.squeeze(collapsed))
    slices = range(batch, y.ndim)
    return np.moveaxis(y, slices, sorted(op.offset_dims)).reshape(shape).copy()


def _starts(op: StablehloGather, shape: tuple[int, ...], indices: Array) -> Array:
    """Return where slices begin along all axes of the operand: [vectors' places, axes]."""
    is_alone = op.index_vector_dim == indices.ndim
    vectors = indices[..., None] if is_alone else np.moveaxis(indices, op.index_vector_dim, -1)
    starts = np.zeros((*vectors.shape[:-1], len(shape)), np.int64)
    starts[..., list(op.start_index_map)] = vectors
    last = np.array(shape, np.int64) - np.array(op.slice_sizes, np.int64)
    return np.clip(starts, 0, last)


def _places(op: StablehloGather, starts: Array) -> tuple[Array, ...]:
    """Return the coordinates of all elements of all slices, one array for each axis."""
    rank, batch = len(op.slice_sizes), starts.shape[:-1]
    coordinates = []
    for axis, size in enumerate(op.slice_sizes):
        apart = np.arange(size).reshape([size if a == axis else 1 for a in range(rank)])
        coordinates.append(starts[..., axis].reshape(*batch, *[1] * rank) + apart)
    return tuple(coordinates)
