"""Activations that operators carry fused into them."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, UnsupportedError
from luciole.schema.enums import ActivationFunctionType

LIMITS = {
    ActivationFunctionType.NONE: (-np.inf, np.inf),
    ActivationFunctionType.RELU: (0.0, np.inf),
    ActivationFunctionType.RELU_N1_TO_1: (-1.0, 1.0),
    ActivationFunctionType.RELU6: (0.0, 6.0),
}
"""What fused activations of compiled kernels cut off, NaN staying NaN; TANH is not one of these."""


def activate(x: Array, activation: ActivationFunctionType) -> Array:
    """Apply a fused activation. Raises UnsupportedError where this type has none."""
    if activation == ActivationFunctionType.NONE:
        return x
    if activation == ActivationFunctionType.RELU:
        return np.asarray(np.maximum(x, x.dtype.type(0)))
    if activation == ActivationFunctionType.RELU6:
        return np.clip(x, x.dtype.type(0), x.dtype.type(6))
    if activation == ActivationFunctionType.RELU_N1_TO_1:
        lowest = 0 if x.dtype.kind == "u" else -1
        return np.clip(x, x.dtype.type(lowest), x.dtype.type(1))
    if activation == ActivationFunctionType.TANH and x.dtype.kind == "f":
        return np.tanh(x)
    raise UnsupportedError(f"fused activation {activation.name} is not supported for {x.dtype}")
