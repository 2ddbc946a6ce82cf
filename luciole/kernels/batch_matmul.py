"""BATCH_MATMUL kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops.batch_matmul import BatchMatMul
from luciole.kernels.registry import reference


@reference(BatchMatMul, TensorType.FLOAT32)
def batch_matmul(op: BatchMatMul, x: Array, y: Array) -> Array:
    """One matrix product per batch."""
    left = x.swapaxes(-1, -2) if op.adjoint_lhs else x
    right = y.swapaxes(-1, -2) if op.adjoint_rhs else y
    with np.errstate(all="ignore"):
        return np.asarray(np.matmul(left, right))
