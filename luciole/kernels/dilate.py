"""DILATE kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array
from luciole.ir.ops.dilate import Dilate, dilated
from luciole.ir.rules import agree, integers
from luciole.kernels.core.limits import affordable
from luciole.kernels.core.registry import ANY, reference


@reference(Dilate, *ANY)
def dilate(op: Dilate, x: Array, dilations: Array, padding_value: Array) -> Array:
    """Put the elements apart, with the padding value between them."""
    steps = integers(dilations, "dilations", x.ndim)
    agree("elements", padding_value.size, 1, "padding_value", "a padding value")
    y = np.full(affordable(op, dilated(x.shape, steps)), padding_value.reshape(()), x.dtype)
    y[tuple(slice(None, None, step) for step in steps)] = x
    return y
