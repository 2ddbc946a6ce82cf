"""RMS_NORM kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops.rms_norm import RmsNorm
from luciole.kernels.core.registry import reference


@reference(RmsNorm, TensorType.FLOAT32)
def rms_norm(op: RmsNorm, x: Array, gamma: Array) -> Array:
    """Divide by the root of the mean square, in double precision."""
    wide, factors = x.astype(np.float64), np.broadcast_to(gamma, x.shape[-1:])
    mean = (wide * wide).sum(axis=-1, keepdims=True) / max(x.shape[-1], 1)
    return np.asarray(factors * wide / np.sqrt(mean + op.epsilon), x.dtype)
