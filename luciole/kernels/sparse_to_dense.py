"""SPARSE_TO_DENSE kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, ShapeError
from luciole.ir.ops.sparse_to_dense import SparseToDense, check_indices
from luciole.ir.rules import agree, integers
from luciole.kernels.arrays.coordinates import columns
from luciole.kernels.core.limits import affordable
from luciole.kernels.core.registry import ANY, reference


@reference(SparseToDense, *ANY)
def sparse_to_dense(
    op: SparseToDense, indices: Array, output_shape: Array, values: Array, default_value: Array
) -> Array:
    """Fill with the default, then write the values in their order."""
    extents = integers(output_shape, "output_shape")
    if min(extents, default=0) < 0:
        raise ShapeError(f"output_shape is {list(extents)}, nothing below 0 is possible")
    check_indices(indices.shape, values.shape, len(extents))
    agree("elements", default_value.size, 1, "default_value", "a default")
    y = np.full(affordable(op, extents), default_value.reshape(()), values.dtype)
    rows = indices if indices.ndim == 2 else indices.reshape(-1, 1)
    y[columns(rows, extents, "the result")] = values
    return y
