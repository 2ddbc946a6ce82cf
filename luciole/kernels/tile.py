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
    times = integers(multiples, "multiples", x.ndim)
    pairs = settled(tuple(n for pair in zip(times, x.shape, strict=True) for n in pair))
    copies = context.results[0].reshape(pairs)
    one = x.reshape([n for extent in x.shape for n in (1, extent)])
    return copy.step([(copies, np.broadcast_to(one, pairs))])
