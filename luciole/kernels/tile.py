"""TILE kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array
from luciole.ir.ops.tile import Tile, tiled
from luciole.ir.rules import integers, settled
from luciole.kernels.core.contract import Context, NativeStep
from luciole.kernels.core.limits import affordable
from luciole.kernels.core.registry import ANY, ANYTHING, native, reference
from luciole.kernels.elements import copy
from luciole.kernels.portable.calls import CCall, PortableContext, portable
from luciole.kernels.portable.moves import TYPES as MOVED
from luciole.kernels.portable.moves import take


@reference(Tile, *ANYTHING)
def tile(op: Tile, x: Array, multiples: Array) -> Array:
    """Repeat the operand side by side."""
    times = integers(multiples, "multiples", x.ndim)
    shape = affordable(op, tiled(x.shape, times))
    # NumPy repeats axis by axis: on the way to nothing, it may need everything
    return np.tile(x, times) if 0 not in shape else np.empty(shape, x.dtype)


@native(Tile, *ANY)
def build(op: Tile, context: Context) -> NativeStep | None:
    """Copy the operand as often as needed, where that is known when the model is loaded."""
    x, multiples = context.operands
    if x is None or multiples is None or not op.multiples.is_constant:
        return None
    copies = _copies(x, multiples)
    return copy.step([(context.results[0].reshape(copies.shape), copies)])


def _copies(x: Array, multiples: Array) -> Array:
    """View the copies as axes of their own, each before the axis that is repeated."""
    times = integers(multiples, "multiples", x.ndim)
    pairs = settled(tuple(n for pair in zip(times, x.shape, strict=True) for n in pair))
    one = x.reshape([n for extent in x.shape for n in (1, extent)])
    return np.broadcast_to(one, pairs)


@portable(Tile, *MOVED)
def in_c(op: Tile, context: PortableContext) -> list[CCall]:
    """Copy the operand as often as needed."""
    multiples = context.constant(op.multiples)
    return [take(op.input, op.results[0], lambda x: _copies(x, multiples))]
