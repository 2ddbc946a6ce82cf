"""SELECT and SELECT_V2 kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array
from luciole.ir.dtypes import NUMPY
from luciole.ir.ops.select import Select, SelectV2, chosen
from luciole.kernels.core.contract import Context, NativeStep
from luciole.kernels.core.registry import ANY, native, reference
from luciole.kernels.elements import mixed

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
