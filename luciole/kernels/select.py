"""SELECT and SELECT_V2 kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, Value
from luciole.ir.dtypes import NUMPY
from luciole.ir.ops.select import Select, SelectV2, chosen
from luciole.ir.value import element_count
from luciole.kernels.core.contract import Context, NativeStep
from luciole.kernels.core.registry import ANY, native, reference
from luciole.kernels.elements import mixed
from luciole.kernels.portable.calls import CCall, Field, PortableContext, portable
from luciole.kernels.portable.moves import TYPES as MOVED
from luciole.kernels.portable.moves import spread, take

COMPILED = tuple(dtype for dtype in ANY if NUMPY[dtype].itemsize in mixed.SIZES)


@reference(Select, *ANY)
def select(op: Select, condition: Array, t: Array, e: Array) -> Array:
    """Select by a condition for each element of the first axis, for all or for every element."""
    chosen(condition.shape, t.shape, e.shape)
    return np.where(_in_front(condition, t), t, e)


def _in_front(condition: Array, t: Array) -> Array:
    """Align a condition with the first axes."""
    return condition.reshape(condition.shape + (1,) * (t.ndim - condition.ndim))


@native(Select, *COMPILED)
def build(op: Select, context: Context) -> NativeStep | None:
    """Choose number by number."""
    condition, t, e = context.operands
    if condition is None or t is None:
        return None
    return mixed.choose(_in_front(condition, t), t, e, context.results[0])


@reference(SelectV2, *ANY)
def select_v2(op: SelectV2, condition: Array, t: Array, e: Array) -> Array:
    """Select with everything broadcast to one shape."""
    return np.where(condition, t, e)


@native(SelectV2, *COMPILED)
def build_v2(op: SelectV2, context: Context) -> NativeStep | None:
    """Choose number by number."""
    condition, t, e = context.operands
    return mixed.choose(condition, t, e, context.results[0])


@portable(Select, *MOVED)
def in_c(op: Select, context: PortableContext) -> list[CCall]:
    """Choose element by element."""
    del context
    condition, y = op.condition, op.results[0]
    if condition.dims == y.dims:
        return [_choice(condition, op.t, op.e, y)]
    truths = Value(f"{condition.name}_spread", condition.dtype, y.dims)
    repeat = take(
        condition, truths, lambda x: np.broadcast_to(_in_front(x, np.empty(y.dims)), y.dims)
    )
    return [repeat, _choice(truths, op.t, op.e, y)]


@portable(SelectV2, *MOVED)
def v2_in_c(op: SelectV2, context: PortableContext) -> list[CCall]:
    """Repeat all operands to one shape, and choose element by element."""
    del context
    y = op.results[0]
    (truths, before), (t, before_t), (e, before_e) = (
        spread(x, y) for x in (op.condition, op.t, op.e)
    )
    return [*before, *before_t, *before_e, _choice(truths, t, e, y)]


def _choice(truths: Value, t: Value, e: Value, y: Value) -> CCall:
    fields: dict[str, Field] = {"count": element_count(y.dims), "size": NUMPY[y.dtype].itemsize}
    return CCall("luc_select", fields, (truths, t, e), (y,))
