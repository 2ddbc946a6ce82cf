"""SQUEEZE kernels."""

from __future__ import annotations

from luciole.ir import Array
from luciole.ir.ops.squeeze import Squeeze, squeezed
from luciole.ir.rules import settled
from luciole.kernels.core.registry import ANYTHING, reference


@reference(Squeeze, *ANYTHING)
def squeeze(op: Squeeze, x: Array) -> Array:
    """Copy the operand without the axes of extent 1."""
    return x.reshape(settled(squeezed(x.shape, op.squeeze_dims))).copy()
