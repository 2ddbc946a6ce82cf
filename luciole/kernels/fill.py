"""FILL kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array
from luciole.ir.ops.fill import Fill, not_negative
from luciole.ir.rules import agree, integers
from luciole.kernels.core.contract import Context, NativeStep
from luciole.kernels.core.limits import affordable
from luciole.kernels.core.registry import ANY, ANYTHING, native, reference
from luciole.kernels.elements import copy


@reference(Fill, *ANYTHING)
def fill(op: Fill, dims: Array, value: Array) -> Array:
    """Repeat one element everywhere."""
    agree("elements", value.size, 1, "value", "a filling")
    shape = affordable(op, not_negative(integers(dims, "dims"), "dims"))
    return np.full(shape, value.reshape(()), value.dtype)


@native(Fill, *ANY)
def build(op: Fill, context: Context) -> NativeStep | None:
    """Repeat one element everywhere, where the shape is known when the model is loaded."""
    value, y = context.operands[1], context.results[0]
    if value is None or not op.dims.is_constant:
        return None
    return copy.step([(y, np.broadcast_to(value.reshape(()), y.shape))])
