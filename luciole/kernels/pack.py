"""PACK kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array
from luciole.ir.ops.pack import Pack, packed
from luciole.kernels.core.registry import ANY, Context, NativeStep, native, reference
from luciole.kernels.elements import copy


@reference(Pack, *ANY)
def pack(op: Pack, inputs: tuple[Array, ...]) -> Array:
    """Stack the operands along a new axis."""
    packed([x.shape for x in inputs], op.axis)
    return np.stack(inputs, axis=op.axis)


@native(Pack, *ANY)
def build(op: Pack, context: Context) -> NativeStep:
    """Copy each operand to its place."""
    given = [x for x in context.operands if x is not None]
    places = np.moveaxis(context.results[0], op.axis, 0)
    return copy.step((places[i, ...], x) for i, x in enumerate(given))
