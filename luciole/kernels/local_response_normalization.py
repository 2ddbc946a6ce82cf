"""LOCAL_RESPONSE_NORMALIZATION kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, LucioleError, TensorType
from luciole.ir.ops.local_response_normalization import LocalResponseNormalization
from luciole.kernels.core.registry import reference


@reference(LocalResponseNormalization, TensorType.FLOAT32)
def local_response_normalization(op: LocalResponseNormalization, x: Array) -> Array:
    """Compute in double precision."""
    for fault in op.verify():
        raise LucioleError(fault)
    wide, depth = x.astype(np.float64), x.shape[-1]
    radius = min(op.radius, depth)
    padded = np.pad(wide * wide, ((0, 0),) * 3 + ((radius, radius),))
    sums = _sliding_sums(padded, 2 * radius + 1)
    return np.asarray(wide * (op.bias + op.alpha * sums) ** -op.beta, x.dtype)


def _sliding_sums(x: Array, width: int) -> Array:
    """Sum each ``width`` neighbours along the last axis, put together from sums of 1, 2, 4, ... of
    them: what is added is never subtracted, so NaN and infinities stay where they are.
    """
    total, done, size = np.zeros((*x.shape[:-1], x.shape[-1] - width + 1)), 0, 1
    while size <= width:
        if width & size:
            total += x[..., done : done + total.shape[-1]]
            done += size
        x = x[..., :-size] + x[..., size:]
        size *= 2
    return total
