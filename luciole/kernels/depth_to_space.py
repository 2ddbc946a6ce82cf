"""DEPTH_TO_SPACE and SPACE_TO_DEPTH kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array
from luciole.ir.ops.depth_to_space import Blocks, DepthToSpace, SpaceToDepth, spread, stacked
from luciole.ir.rules import settled
from luciole.kernels.core.contract import Context, NativeStep
from luciole.kernels.core.registry import ANY, native, reference
from luciole.kernels.elements import copy
from luciole.kernels.portable.calls import CCall, PortableContext, portable
from luciole.kernels.portable.moves import TYPES as MOVED
from luciole.kernels.portable.moves import take


@reference(DepthToSpace, *ANY)
def depth_to_space(op: DepthToSpace, x: Array) -> Array:
    """Move channels to pixels: [batch, rows, columns, channels] to [batch, rows side, columns side,
    channels / side^2].
    """
    y = np.empty(settled(spread(x.shape, op.block_size)), x.dtype)
    _pixels(y, op.block_size)[...] = _channels(x, op.block_size)
    return y


@reference(SpaceToDepth, *ANY)
def space_to_depth(op: SpaceToDepth, x: Array) -> Array:
    """Move pixels to channels: [batch, rows, columns, channels] to [batch, rows / side, columns /
    side, channels side^2].
    """
    y = np.empty(settled(stacked(x.shape, op.block_size)), x.dtype)
    _channels(y, op.block_size)[...] = _pixels(x, op.block_size)
    return y


def _pixels(array: Array, side: int) -> Array:
    """View the side whose blocks are pixels as [batch, block row, row in it, block column, column
    in it, channel].
    """
    batch, rows, columns, channels = array.shape
    return array.reshape(batch, rows // side, side, columns // side, side, channels)


def _channels(array: Array, side: int) -> Array:
    """View the side whose blocks are channels with the same axes."""
    batch, rows, columns, channels = array.shape
    return array.reshape(batch, rows, columns, side, side, channels // side**2).swapaxes(2, 3)


@native(DepthToSpace, *ANY)
@native(SpaceToDepth, *ANY)
def build(op: Blocks, context: Context) -> NativeStep | None:
    """Copy all elements in one strided copy; their number was checked before."""
    (x,), (y,) = context.operands, context.results
    if x is None:
        return None
    if isinstance(op, DepthToSpace):
        return copy.step([(_pixels(y, op.block_size), _channels(x, op.block_size))])
    return copy.step([(_channels(y, op.block_size), _pixels(x, op.block_size))])


@portable(DepthToSpace, *MOVED)
def depth_to_space_in_c(op: DepthToSpace, context: PortableContext) -> list[CCall]:
    """Copy all elements in one strided copy."""
    del context
    return [take(op.input, op.results[0], lambda x: _channels(x, op.block_size))]


@portable(SpaceToDepth, *MOVED)
def space_to_depth_in_c(op: SpaceToDepth, context: PortableContext) -> list[CCall]:
    """Copy all elements in one strided copy."""
    del context
    return [take(op.input, op.results[0], lambda x: _pixels(x, op.block_size).swapaxes(2, 3))]
