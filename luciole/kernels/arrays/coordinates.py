"""Indices that are computed when a model runs: checked before they are used."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, ShapeError


def within(indices: Array, n: int, what: str) -> Array:
    """Return indices as NumPy takes them. Raises ShapeError for the first that is not one of 0 to n
    - 1, elements of ``what``.
    """
    if indices.dtype.kind not in "iu":
        raise ShapeError(f"indices are {indices.dtype}, integers are needed")
    wrong = indices[(indices < 0) | (indices >= n)]
    if wrong.size:
        raise ShapeError(f"index {wrong.flat[0]} is out of range: {what} has {n} elements")
    return indices.astype(np.intp, copy=False)


def columns(indices: Array, shape: tuple[int, ...], name: str) -> tuple[Array, ...]:
    """Split coordinates [.., k] into the first k axes of a tensor of this shape: one array for each
    axis.

    Raises ShapeError for the first that lies outside, and where there are more than axes.
    """
    depth = indices.shape[-1] if indices.ndim else 0
    if not indices.ndim or depth > len(shape):
        raise ShapeError(f"indices has {depth} coordinates, {name} has {len(shape)} axes")
    return tuple(within(indices[..., i], shape[i], f"axis {i} of {name}") for i in range(depth))
