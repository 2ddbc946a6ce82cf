"""SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND kernels."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from luciole.ir import Array, Value
from luciole.ir.ops.pad import padding_pairs
from luciole.ir.ops.space_to_batch_nd import (
    BatchToSpaceND,
    Pairs,
    SpaceToBatchND,
    extents,
    to_batch,
    to_space,
)
from luciole.ir.quantization import zero_code
from luciole.kernels.core.contract import Built, Context, NativeStep
from luciole.kernels.core.limits import affordable
from luciole.kernels.core.reasons import Declined, accepted
from luciole.kernels.core.registry import ANY, native, reference
from luciole.kernels.elements import copy
from luciole.kernels.elements.borders import inside, slabs
from luciole.kernels.portable.calls import CCall, PortableContext, portable
from luciole.kernels.portable.moves import TYPES as MOVED
from luciole.kernels.portable.moves import surround, take

MOST_PLACES = 256
"""Places in a block up to which each is a move of its own."""


@reference(SpaceToBatchND, *ANY)
def space_to_batch_nd(op: SpaceToBatchND, x: Array, block_shape: Array, paddings: Array) -> Array:
    """Pad with the zero point, then bring the places in a block to the front."""
    block, pairs = _settings(x, block_shape, paddings, "paddings")
    shape = affordable(op, to_batch(x.shape, block, pairs))
    borders = [(0, 0), *pairs, (0, 0)]
    padded = np.pad(x, borders, constant_values=zero_code(op.output))
    return _places(padded, shape[1:-1], block).reshape(shape)


def _places(padded: Array, blocks: Sequence[int], block: Sequence[int]) -> Array:
    """View the places in a block as the first axes."""
    cut = padded.reshape(*_cut(len(padded), blocks, block), padded.shape[-1])
    m = len(block)
    return cut.transpose(*range(2, 2 * m + 1, 2), 0, *range(1, 2 * m, 2), 2 * m + 1)


@reference(BatchToSpaceND, *ANY)
def batch_to_space_nd(op: BatchToSpaceND, x: Array, block_shape: Array, crops: Array) -> Array:
    """Bring the places in a block between the blocks, then crop."""
    block, pairs = _settings(x, block_shape, crops, "crops")
    shape = to_space(x.shape, block, pairs)
    whole = [n * part for n, part in zip(x.shape[1:-1], block, strict=True)]
    y = _between_blocks(x, block).reshape(-1, *whole, x.shape[-1])
    return y[inside(affordable(op, shape), [(0, 0), *pairs, (0, 0)])].copy()


def _between_blocks(x: Array, block: Sequence[int]) -> Array:
    """View the places in a block behind the axes of their blocks."""
    m = len(block)
    cut = x.reshape(*block, len(x) // math.prod(block), *x.shape[1:])
    return cut.transpose(m, *(axis for i in range(m) for axis in (m + 1 + i, i)), 2 * m + 1)


def _cut(batch: int, blocks: Sequence[int], block: Sequence[int]) -> tuple[int, ...]:
    """View the batch, then each axis as blocks and places in them."""
    return (batch, *(n for pair in zip(blocks, block, strict=True) for n in pair))


def _settings(
    x: Array, block_shape: Array, borders: Array, name: str
) -> tuple[tuple[int, ...], Pairs]:
    between = x.ndim - 2
    return extents(block_shape, between), padding_pairs(borders, between, name)


def _parts(
    batches: Array, space: Array, block: Sequence[int], borders: Pairs
) -> Iterator[tuple[Array, tuple[slice, ...], Array]]:
    """Yield for each place in a block the batches that stand for it, which of their elements lie in
    the space, and these in the space.
    """
    count = len(space)
    for number, place in enumerate(product(*map(range, block))):
        within, places = [slice(None)], [slice(None)]
        for n, at, step, (before, _) in zip(space.shape[1:-1], place, block, borders, strict=True):
            first = max(-(-(before - at) // step), 0)
            begin = first * step + at - before
            steps = max(-(-(n - begin) // step), 0)
            within.append(slice(first, first + steps))
            places.append(slice(begin, None, step) if steps else slice(0, 0))
        own = batches[number * count : (number + 1) * count]
        yield own, (*within, slice(None)), space[tuple(places)]


@native(SpaceToBatchND, *ANY)
def build_space_to_batch_nd(op: SpaceToBatchND, context: Context) -> Built:
    """Copy each place in a block, and slabs of zero points around it."""
    x, block_shape, paddings = context.operands
    if x is None or block_shape is None or paddings is None or not _fixed(op, block_shape):
        return None
    zero = accepted(zero_code, op.output)
    if isinstance(zero, Declined):
        return zero
    settings = _settings(x, block_shape, paddings, "paddings")
    moved, owns = [], []
    for own, within, part in _parts(context.results[0], x, *settings):
        around, borders = slabs(own, within, np.array(zero, x.dtype))
        moved += [(own[within], part), *around]
        owns += borders
    return copy.step(moved, *owns)


@native(BatchToSpaceND, *ANY)
def build_batch_to_space_nd(op: BatchToSpaceND, context: Context) -> NativeStep | None:
    """Copy each place in a block."""
    x, block_shape, crops = context.operands
    if x is None or block_shape is None or crops is None or not _fixed(op, block_shape):
        return None
    parts = _parts(x, context.results[0], *_settings(x, block_shape, crops, "crops"))
    return copy.step((part, own[within]) for own, within, part in parts)


def _fixed(op: SpaceToBatchND | BatchToSpaceND, block_shape: Array) -> bool:
    """Return whether all is known when the model is loaded, and not too much."""
    constant = all(value is not None and value.is_constant for value in op.operands[1:])
    return constant and math.prod(block_shape.tolist()) <= MOST_PLACES


@portable(SpaceToBatchND, *MOVED)
def space_to_batch_nd_in_c(op: SpaceToBatchND, context: PortableContext) -> list[CCall]:
    """Pad, then copy the places in a block one behind the other."""
    x, y = op.input, op.results[0]
    block, pairs = _constant_settings(op, context, op.paddings)
    whole = [n * side for n, side in zip(y.dims[1:-1], block, strict=True)]
    padded, before = x, list[CCall]()
    if any(map(any, pairs)):
        padded = Value(f"{x.name}_padded", x.dtype, (x.dims[0], *whole, x.dims[-1]))
        before = surround(x, padded, [(0, 0), *pairs, (0, 0)], zero_code(op.output))
    return [*before, take(padded, y, lambda array: _places(array, y.dims[1:-1], block))]


@portable(BatchToSpaceND, *MOVED)
def batch_to_space_nd_in_c(op: BatchToSpaceND, context: PortableContext) -> list[CCall]:
    """Copy the places in a block between the blocks, then what is not cropped."""
    x, y = op.input, op.results[0]
    block, pairs = _constant_settings(op, context, op.crops)
    if not any(map(any, pairs)):
        return [take(x, y, lambda array: _between_blocks(array, block))]
    whole = [n * side for n, side in zip(x.dims[1:-1], block, strict=True)]
    full = Value(f"{x.name}_whole", x.dtype, (y.dims[0], *whole, x.dims[-1]))
    kept = inside(y.dims, [(0, 0), *pairs, (0, 0)])
    return [
        take(x, full, lambda array: _between_blocks(array, block)),
        take(full, y, lambda array: array[kept]),
    ]


def _constant_settings(
    op: SpaceToBatchND | BatchToSpaceND, context: PortableContext, borders: Value
) -> tuple[tuple[int, ...], Pairs]:
    between = len(op.input.dims) - 2
    block = extents(context.constant(op.block_shape), between)
    return block, padding_pairs(context.constant(borders), between, "borders")
