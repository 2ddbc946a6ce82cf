"""TRANSPOSE kernels."""

from __future__ import annotations

from luciole.ir import Array
from luciole.ir.ops.transpose import Transpose, permutation
from luciole.ir.rules import integers
from luciole.kernels.core.contract import Context, NativeStep
from luciole.kernels.core.registry import ANY, native, reference
from luciole.kernels.elements import copy
from luciole.kernels.portable.calls import CCall, PortableContext, portable
from luciole.kernels.portable.moves import TYPES as MOVED
from luciole.kernels.portable.moves import take


@reference(Transpose, *ANY)
def transpose(op: Transpose, a: Array, perm: Array) -> Array:
    """Copy the operand with the axes in the new order."""
    return a.transpose(permutation(integers(perm, "perm", a.ndim), a.ndim)).copy()


@native(Transpose, *ANY)
def build(op: Transpose, context: Context) -> NativeStep | None:
    """Copy with the axes in their new order, where that is known when the model is loaded."""
    a, perm = context.operands
    if a is None or perm is None or not op.perm.is_constant:
        return None
    turned = a.transpose(permutation(integers(perm, "perm", a.ndim), a.ndim))
    return copy.step([(context.results[0], turned)])


@portable(Transpose, *MOVED)
def in_c(op: Transpose, context: PortableContext) -> list[CCall]:
    """Copy with the axes in their new order."""
    perm = integers(context.constant(op.perm), "perm", len(op.a.dims))
    return [take(op.a, op.results[0], lambda a: a.transpose(permutation(perm, a.ndim)))]
