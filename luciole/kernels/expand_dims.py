"""EXPAND_DIMS kernels."""

from __future__ import annotations

from luciole.ir import Array
from luciole.ir.ops.expand_dims import ExpandDims, expanded
from luciole.ir.rules import integers, settled
from luciole.kernels.core.registry import ANYTHING, reference


@reference(ExpandDims, *ANYTHING)
def expand_dims(op: ExpandDims, x: Array, axis: Array) -> Array:
    """Copy the operand with an axis more."""
    return x.reshape(settled(expanded(x.shape, integers(axis, "axis", 1)))).copy()
