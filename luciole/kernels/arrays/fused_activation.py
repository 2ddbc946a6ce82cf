"""Activations that operators carry fused into them."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, UnsupportedError
from luciole.ir.ops.activations import LIMITS
from luciole.schema.enums import ActivationFunctionType


def activate(x: Array, activation: ActivationFunctionType) -> Array:
    """Apply a fused activation. Raises UnsupportedError where this type has none."""
    if activation == ActivationFunctionType.NONE:
        return x
    if activation == ActivationFunctionType.TANH and x.dtype.kind == "f":
        return np.tanh(x)
    if activation not in LIMITS:
        raise UnsupportedError(f"fused activation {activation.name} is not supported for {x.dtype}")
    low, high = LIMITS[activation]
    least = x.dtype.type(max(low, 0) if x.dtype.kind == "u" else low)
    x = np.where(x < least, least, x)  # -0 stays
    return x if high == np.inf else np.where(x > high, x.dtype.type(high), x)
