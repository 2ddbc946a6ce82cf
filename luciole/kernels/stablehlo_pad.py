"""STABLEHLO_PAD kernels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from luciole.ir import Array
from luciole.ir.ops.stablehlo_pad import StablehloPad, padded, spread
from luciole.ir.rules import agree, settled
from luciole.kernels.core.limits import affordable
from luciole.kernels.core.registry import ANY, reference


@reference(StablehloPad, *ANY)
def stablehlo_pad(op: StablehloPad, x: Array, value: Array) -> Array:
    """Fill the result, then write the elements that are left."""
    agree("elements", value.size, 1, "padding_value", "a padding")
    low, interior = op.edge_padding_low, op.interior_padding
    shape = settled(padded(x.shape, low, op.edge_padding_high, interior))
    y = np.full(affordable(op, shape), value.reshape(()), x.dtype)
    return spread_into(y, x, low, interior)


def spread_into(y: Array, x: Array, low: Sequence[int], interior: Sequence[int]) -> Array:
    """Write the elements that are left to their places in an array of the padded shape."""
    pairs = [_axis(*axis) for axis in zip(x.shape, y.shape, low, interior, strict=True)]
    y[tuple([to for _, to in pairs])] = x[tuple([source for source, _ in pairs])]
    return y


def _axis(size: int, extent: int, low: int, interior: int) -> tuple[slice, slice]:
    """Find the elements of an axis that are left, and their places."""
    step = interior + 1
    first = min(-(min(low, 0) // step), size)
    begin = low + first * step
    count = len(range(begin, min(extent, low + spread(size, interior)), step))
    return slice(first, first + count), slice(begin, begin + count * step, step)
