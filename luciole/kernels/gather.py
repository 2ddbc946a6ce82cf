"""GATHER kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, ShapeError
from luciole.ir.ops.gather import Gather, gathered, places
from luciole.ir.rules import settled
from luciole.kernels.core.contract import Context, NativeStep
from luciole.kernels.core.registry import ANY, ANYTHING, native, reference
from luciole.kernels.elements import copy
from luciole.kernels.portable.calls import CCall, PortableContext, portable
from luciole.kernels.portable.moves import TYPES as MOVED
from luciole.kernels.portable.moves import look_up, pick


@reference(Gather, *ANYTHING)
def gather(op: Gather, params: Array, indices: Array) -> Array:
    """Pick along the axis, one batch after the other."""
    along, batch = places(op, params.ndim, indices.ndim)
    result = np.empty(settled(gathered(params.shape, indices.shape, along, batch)), params.dtype)
    check_indices(indices, along, params.shape[along])
    for b in np.ndindex(*indices.shape[:batch]):
        result[b] = np.take(params[b], indices[b], axis=along - batch)
    return result


def check_indices(indices: Array, along: int, n: int) -> None:
    """Raise ShapeError for the first index that names no element."""
    wrong = indices[(indices < 0) | (indices >= n)]
    if wrong.size:
        raise ShapeError(f"index {wrong.flat[0]} is out of range: axis {along} has {n} elements")


MOST_PICKED = 4096
"""Constant indices up to which each is a copy of its own."""


@native(Gather, *ANY)
def build(op: Gather, context: Context) -> NativeStep | None:
    """Copy one slice for each index, where indices are known when the model is loaded, and right.

    A compiled kernel cannot refuse an index: the reference does.
    """
    params, indices = context.operands
    if params is None or indices is None or not op.indices.is_constant:
        return None
    along, batch = places(op, params.ndim, indices.ndim)
    n = params.shape[along]
    fits = not indices.size or bool(indices.min() >= 0 and indices.max() < n)
    if batch or indices.size > MOST_PICKED or not fits:
        return None
    rows = np.moveaxis(params, along, 0)
    shape = (*params.shape[:along], indices.size, *params.shape[along + 1 :])
    picked = np.moveaxis(context.results[0].reshape(shape), along, 0)
    chosen = enumerate(indices.ravel().tolist())
    return copy.step((picked[i, ...], rows[k, ...]) for i, k in chosen)


@portable(Gather, *MOVED)
def in_c(op: Gather, context: PortableContext) -> list[CCall]:
    """Copy slices: by a table where indices are constant, else by what a run computes, zeros where
    that is no slice's number.
    """
    params, y = op.params, op.results[0]
    along, batch = places(op, len(params.dims), len(op.indices.dims))
    if batch or op.indices not in context.constants:
        return [look_up(params, op.indices, y, along, batch)]
    indices = context.constant(op.indices)
    check_indices(indices, along, params.dims[along])
    every = [np.arange(n) for n in params.dims]
    every[along] = indices.ravel()
    return [pick(params, y, every)]
