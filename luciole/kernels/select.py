"""SELECT and SELECT_V2 kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array
from luciole.ir.ops.select import Select, SelectV2, chosen
from luciole.kernels.core.registry import ANY, reference


@reference(Select, *ANY)
def select(op: Select, condition: Array, t: Array, e: Array) -> Array:
    """Select by a condition for each element of the first axis, for all or for every element."""
    chosen(condition.shape, t.shape, e.shape)
    return np.where(condition.reshape(condition.shape + (1,) * (t.ndim - condition.ndim)), t, e)


@reference(SelectV2, *ANY)
def select_v2(op: SelectV2, condition: Array, t: Array, e: Array) -> Array:
    """Select with everything broadcast to one shape."""
    return np.where(condition, t, e)
