"""Kernels of the pools."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops.pool_2d import AveragePool2D, MaxPool2D, Pool2D
from luciole.kernels.activation import activate
from luciole.kernels.registry import reference
from luciole.kernels.windows import patches


@reference(AveragePool2D, TensorType.FLOAT32)
def average_pool_2d(op: AveragePool2D, x: Array) -> Array:
    """The sum over each window, divided by how many of its elements are not padding."""
    inside = _windows(op, np.ones((1, *x.shape[1:3], 1), x.dtype)).sum(axis=(4, 5))
    return activate(_windows(op, x).sum(axis=(4, 5)) / inside, op.activation)


@reference(MaxPool2D, TensorType.FLOAT32)
def max_pool_2d(op: MaxPool2D, x: Array) -> Array:
    """The largest element; a window always has one that is not padding."""
    return activate(_windows(op, x, fill=-np.inf).max(axis=(4, 5)), op.activation)


def _windows(op: Pool2D, x: Array, fill: float = 0) -> Array:
    kernel, stride = (op.filter_height, op.filter_width), (op.stride_h, op.stride_w)
    return patches(x, kernel, stride, op.padding, fill=fill)
