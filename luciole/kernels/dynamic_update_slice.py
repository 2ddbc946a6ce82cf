"""DYNAMIC_UPDATE_SLICE kernels."""

from __future__ import annotations

from luciole.ir import Array
from luciole.ir.ops.dynamic_update_slice import DynamicUpdateSlice, check_box, clamped
from luciole.ir.rules import integers
from luciole.kernels.core.registry import ANY, reference
from luciole.kernels.portable.calls import CCall, PortableContext, portable
from luciole.kernels.portable.moves import TYPES, update


@reference(DynamicUpdateSlice, *ANY)
def dynamic_update_slice(
    op: DynamicUpdateSlice, x: Array, update: Array, start_indices: Array
) -> Array:
    """Copy the operand with the box replaced."""
    check_box(update.shape, x.shape)
    begin = clamped(integers(start_indices, "start_indices", x.ndim), update.shape, x.shape)
    y = x.copy()
    y[tuple(slice(b, b + n) for b, n in zip(begin, update.shape, strict=True))] = update
    return y


@portable(DynamicUpdateSlice, *TYPES)
def in_c(op: DynamicUpdateSlice, context: PortableContext) -> list[CCall]:
    """Copy the operand, and the box into it."""
    return [update(op.input, op.update, op.start_indices, op.results[0])]
