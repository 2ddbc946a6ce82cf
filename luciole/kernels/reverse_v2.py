"""REVERSE_V2 kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array
from luciole.ir.ops.reverse_v2 import ReverseV2, turned
from luciole.ir.rules import integers
from luciole.kernels.core.contract import Context, NativeStep
from luciole.kernels.core.registry import ANY, native, reference
from luciole.kernels.elements import copy
from luciole.kernels.portable.calls import CCall, PortableContext, portable
from luciole.kernels.portable.moves import TYPES as MOVED
from luciole.kernels.portable.moves import take


@reference(ReverseV2, *ANY)
def reverse(op: ReverseV2, x: Array, axis: Array) -> Array:
    """Copy the operand with axes reversed."""
    return _turned(x, axis).copy()


def _turned(x: Array, axis: Array) -> Array:
    axes = turned(integers(axis, "axis"), x.ndim)
    return np.flip(x, axes) if x.ndim else x  # of a scalar NumPy makes a copy


@native(ReverseV2, *ANY)
def build(op: ReverseV2, context: Context) -> NativeStep | None:
    """Copy with steps backwards, where the axes are known when the model is loaded."""
    x, axis = context.operands
    if x is None or axis is None or not op.axis.is_constant:
        return None
    return copy.step([(context.results[0], _turned(x, axis))])


@portable(ReverseV2, *MOVED)
def in_c(op: ReverseV2, context: PortableContext) -> list[CCall]:
    """Copy with steps backwards."""
    axis = context.constant(op.axis)
    return [take(op.tensor, op.results[0], lambda x: _turned(x, axis))]
