"""TRANSPOSE kernels."""

from __future__ import annotations

from luciole.ir import Array
from luciole.ir.ops.transpose import Transpose, permutation
from luciole.ir.rules import integers
from luciole.kernels.registry import ANY, reference


@reference(Transpose, *ANY)
def transpose(op: Transpose, a: Array, perm: Array) -> Array:
    """A copy with the axes in the new order."""
    return a.transpose(permutation(integers(perm, "perm", a.ndim), a.ndim)).copy()
