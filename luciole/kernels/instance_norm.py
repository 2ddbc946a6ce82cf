"""INSTANCE_NORM kernels."""

from __future__ import annotations

import math

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops.instance_norm import InstanceNorm
from luciole.kernels.arrays.fused_activation import activate
from luciole.kernels.core.registry import reference


@reference(InstanceNorm, TensorType.FLOAT32)
def instance_norm(op: InstanceNorm, x: Array, gamma: Array, beta: Array) -> Array:
    """Normalize each channel of each image, in double precision."""
    pixels, last = ((1, 2), x.shape[3:]) if x.ndim == 4 else ((2,), (x.shape[1], 1))
    factor, shift = (
        np.broadcast_to(a, last[:1]).astype(np.float64).reshape(last) for a in (gamma, beta)
    )
    wide, count = x.astype(np.float64), max(math.prod(x.shape[axis] for axis in pixels), 1)
    centred = wide - wide.sum(axis=pixels, keepdims=True) / count
    variance = (centred * centred).sum(axis=pixels, keepdims=True) / count
    y = factor * centred / np.sqrt(variance + op.epsilon) + shift
    return activate(y.astype(x.dtype), op.activation)
