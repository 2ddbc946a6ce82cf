"""LEAKY_RELU kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops.leaky_relu import LeakyRelu
from luciole.kernels.registry import reference


@reference(LeakyRelu, TensorType.FLOAT32)
def leaky_relu(op: LeakyRelu, x: Array) -> Array:
    """x where it is positive, else alpha x."""
    with np.errstate(all="ignore"):
        return np.where(x > 0, x, x * x.dtype.type(op.alpha))
