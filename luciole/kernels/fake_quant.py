"""FAKE_QUANT kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, LucioleError, TensorType
from luciole.ir.ops.fake_quant import FakeQuant, limits
from luciole.kernels.core.registry import reference


@reference(FakeQuant, TensorType.FLOAT32)
def fake_quant(op: FakeQuant, x: Array) -> Array:
    """Round to whole steps above the lower limit, halves up; NaN becomes the lower limit."""
    for fault in op.verify():
        raise LucioleError(fault)
    if not -np.inf < op.min < op.max < np.inf:
        raise LucioleError(f"min is {op.min} and max {op.max}: no range of numbers")
    low, high, scale = limits(op)
    inside = np.minimum(np.fmax(x, low), high)
    steps = (inside - low) * (np.float32(1) / scale)
    whole = np.floor(steps.astype(np.float64) + 0.5).astype(np.float32)
    return np.asarray(whole * scale + low, x.dtype)
