"""SLICE kernels."""

from __future__ import annotations

from types import EllipsisType

from luciole.ir import Array
from luciole.ir.ops.slice import Slice, box
from luciole.ir.rules import integers, settled
from luciole.kernels.core.contract import Context, NativeStep
from luciole.kernels.core.registry import ANY, ANYTHING, native, reference
from luciole.kernels.elements import copy
from luciole.kernels.portable.calls import CCall, PortableContext, portable
from luciole.kernels.portable.moves import TYPES as MOVED
from luciole.kernels.portable.moves import take


@reference(Slice, *ANYTHING)
def slice_(op: Slice, x: Array, begin: Array, size: Array) -> Array:
    """Copy the box."""
    return _box(x, begin, size).copy()


def _box(x: Array, begin: Array, size: Array) -> Array:
    """View the box."""
    first = integers(begin, "begin", x.ndim)
    extents = settled(box(x.shape, first, integers(size, "size", x.ndim)))
    inside = [slice(b, b + n) for b, n in zip(first, extents, strict=True)]
    index: tuple[slice | EllipsisType, ...] = (*inside, ...)  # a view also of a scalar
    return x[index]


@native(Slice, *ANY)
def build(op: Slice, context: Context) -> NativeStep | None:
    """Copy the box, where it is known when the model is loaded."""
    x, begin, size = context.operands
    fixed = op.begin.is_constant and op.size.is_constant
    if x is None or begin is None or size is None or not fixed:
        return None
    return copy.step([(context.results[0], _box(x, begin, size))])


@portable(Slice, *MOVED)
def in_c(op: Slice, context: PortableContext) -> list[CCall]:
    """Copy the box."""
    begin, size = context.constant(op.begin), context.constant(op.size)
    return [take(op.input, op.results[0], lambda x: _box(x, begin, size))]
