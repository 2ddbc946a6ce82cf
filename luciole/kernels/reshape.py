"""RESHAPE kernels."""

from __future__ import annotations

from luciole.ir import Array
from luciole.ir.ops.reshape import Reshape, attribute_shape, reshaped
from luciole.ir.rules import integers, settled
from luciole.kernels.core.registry import ANYTHING, reference


@reference(Reshape, *ANYTHING)
def reshape(op: Reshape, x: Array, shape: Array | None) -> Array:
    """Copy the elements to the target shape."""
    vector = shape if shape is not None and shape.ndim == 1 else None
    target = attribute_shape(op) if vector is None else integers(vector, "shape")
    return x.reshape(settled(reshaped(x.shape, target))).copy()
