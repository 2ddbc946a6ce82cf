"""ROPE kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops.rope import Rope
from luciole.kernels.core.registry import reference
from luciole.schema.enums import RoPEMode


@reference(Rope, TensorType.FLOAT32)
def rope(op: Rope, x: Array, sin_table: Array, cos_table: Array) -> Array:
    """Multiply each element by the cosine of its place, and its partner by the sine."""
    sin, cos = np.broadcast_to(sin_table, x.shape), np.broadcast_to(cos_table, x.shape)
    half = x.shape[-1] // 2
    if op.mode == RoPEMode.GPT_J:
        first, second = slice(0, None, 2), slice(1, None, 2)
    else:
        first, second = slice(0, half), slice(half, None)
    a, b = x[..., first], x[..., second]
    y = np.empty_like(x)
    y[..., first] = a * cos[..., first] - b * sin[..., first]
    y[..., second] = a * sin[..., second] + b * cos[..., second]
    return y
