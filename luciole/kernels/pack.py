"""PACK kernels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from luciole.ir import Array, Value
from luciole.ir.ops.pack import Pack, packed
from luciole.kernels.core.contract import Context, NativeStep
from luciole.kernels.core.registry import ANY, native, reference
from luciole.kernels.elements import copy
from luciole.kernels.portable.calls import CCall, PortableContext, portable
from luciole.kernels.portable.moves import TYPES as MOVED
from luciole.kernels.portable.moves import place


@reference(Pack, *ANY)
def pack(op: Pack, inputs: tuple[Array, ...]) -> Array:
    """Stack the operands along a new axis."""
    packed([x.shape for x in inputs], op.axis)
    return np.stack(inputs, axis=op.axis)


@native(Pack, *ANY)
def build(op: Pack, context: Context) -> NativeStep:
    """Copy each operand to its place."""
    operands = [x for x in context.operands if x is not None]
    places = np.moveaxis(context.results[0], op.axis, 0)
    return copy.step((places[i, ...], x) for i, x in enumerate(operands))


@portable(Pack, *MOVED)
def in_c(op: Pack, context: PortableContext) -> list[CCall]:
    """Copy each operand to its place."""
    del context
    y = op.results[0]
    axis, calls = op.axis % len(y.dims), []
    for number, x in enumerate(op.inputs):
        slab = Value(x.name, x.dtype, (*x.dims[:axis], 1, *x.dims[axis:]))
        first = [number if a == axis else 0 for a in range(len(y.dims))]
        calls.append(replace(place(slab, y, first), reads=(x,)))
    return calls
