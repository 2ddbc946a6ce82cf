"""UNIQUE kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, TensorType, UnsupportedError
from luciole.ir.dtypes import NUMPY
from luciole.ir.fields import INDEX
from luciole.ir.ops.unique import Unique
from luciole.kernels.core.limits import SORT_BYTES, set_aside
from luciole.kernels.core.registry import reference


@reference(
    Unique,
    *(TensorType.FLOAT32, TensorType.INT8, TensorType.UINT8, TensorType.INT16),
    *(TensorType.INT32, TensorType.INT64),
)
def unique(op: Unique, x: Array) -> tuple[Array, Array]:
    """List each element once; NaN is one element. Raises UnsupportedError unless the places are
    INT32 or INT64.
    """
    if op.idx_out_type not in INDEX:
        raise UnsupportedError(f"idx_out_type is {op.idx_out_type.name}, not INT32 or INT64")
    with set_aside(SORT_BYTES * x.size):
        _, first, which = np.unique(x, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return x[first[order]], place[which].astype(NUMPY[op.idx_out_type])
