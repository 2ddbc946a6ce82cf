"""BUCKETIZE kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, LucioleError, TensorType
from luciole.ir.ops.bucketize import Bucketize
from luciole.kernels.core.registry import reference


@reference(Bucketize, TensorType.FLOAT32, TensorType.FLOAT64, TensorType.INT32, TensorType.INT64)
def bucketize(op: Bucketize, x: Array) -> Array:
    """Find each element's bucket by binary search. Integers are compared as float32, as TFLite
    does; NaN lies above all boundaries.
    """
    for fault in op.verify():
        raise LucioleError(fault)
    boundaries = np.array(op.boundaries, np.float32)
    numbers = x if x.dtype == np.float64 else x.astype(np.float32)
    return np.searchsorted(boundaries, numbers, side="right").astype(np.int32)
