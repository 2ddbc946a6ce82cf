"""BROADCAST_TO and BROADCAST_ARGS kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array
from luciole.ir.ops.broadcast import BroadcastArgs, BroadcastTo, common, stretched
from luciole.ir.ops.fill import not_negative
from luciole.ir.rules import integers
from luciole.kernels.core.contract import Context, NativeStep
from luciole.kernels.core.limits import affordable
from luciole.kernels.core.registry import ANY, native, reference
from luciole.kernels.elements import copy
from luciole.kernels.elementwise_binary import INTEGERS
from luciole.kernels.portable.calls import CCall, PortableContext, portable
from luciole.kernels.portable.moves import TYPES as MOVED
from luciole.kernels.portable.moves import take


@reference(BroadcastTo, *ANY)
def broadcast_to(op: BroadcastTo, x: Array, shape: Array) -> Array:
    """Copy the broadcast view, so that every element has memory of its own."""
    target = not_negative(integers(shape, "shape"), "shape")
    return np.broadcast_to(x, affordable(op, stretched(x.shape, target))).copy()


@reference(BroadcastArgs, *INTEGERS)
def broadcast_args(op: BroadcastArgs, s0: Array, s1: Array) -> Array:
    """Compute the extents that both shapes are broadcast to."""
    return np.array(common(integers(s0, "s0"), integers(s1, "s1")), s0.dtype)


@native(BroadcastTo, *ANY)
def build(op: BroadcastTo, context: Context) -> NativeStep | None:
    """Copy the operand as often as needed, where the shape is known when the model is loaded."""
    x, y = context.operands[0], context.results[0]
    if x is None or not op.shape.is_constant:
        return None
    return copy.step([(y, np.broadcast_to(x, y.shape))])


@portable(BroadcastTo, *MOVED)
def in_c(op: BroadcastTo, context: PortableContext) -> list[CCall]:
    """Copy the operand as often as needed."""
    del context
    y = op.results[0]
    return [take(op.input, y, lambda x: np.broadcast_to(x, y.dims))]
