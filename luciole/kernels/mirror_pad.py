"""MIRROR_PAD kernels."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from types import EllipsisType

import numpy as np

from luciole.ir import Array
from luciole.ir.ops.mirror_pad import MirrorPad, mirrored
from luciole.ir.ops.pad import padding_pairs
from luciole.kernels.core.contract import Context, NativeStep
from luciole.kernels.core.limits import affordable
from luciole.kernels.core.registry import ANY, native, reference
from luciole.kernels.elements import copy
from luciole.kernels.portable.calls import CCall, PortableContext, portable
from luciole.kernels.portable.moves import TYPES as MOVED
from luciole.kernels.portable.moves import pick
from luciole.schema.enums import MirrorPadMode

Cut = tuple[slice, slice]
"""Part of an axis of the result, and the part of the operand that comes to lie there."""


@reference(MirrorPad, *ANY)
def mirror_pad(op: MirrorPad, x: Array, paddings: Array) -> Array:
    """Surround the operand with its mirror images, and with theirs in the corners."""
    pairs = padding_pairs(paddings, x.ndim)
    y = np.empty(affordable(op, mirrored(x.shape, pairs, op.mode)), x.dtype)
    for to, source in _boxes(op, y, x, pairs):
        to[...] = source
    return y


def _boxes(
    op: MirrorPad, y: Array, x: Array, pairs: list[tuple[int, int]]
) -> Iterator[tuple[Array, Array]]:
    """Yield views of the result that cover it, none of them empty, and the part of the operand for
    each.
    """
    cuts = (_cuts(op, n, *pair) for n, pair in zip(x.shape, pairs, strict=True))
    for box in product(*cuts):
        inside: list[tuple[slice | EllipsisType, ...]] = [
            (*(cut[side] for cut in box), ...) for side in (0, 1)
        ]  # views also of a scalar
        yield y[inside[0]], x[inside[1]]


def _cuts(op: MirrorPad, n: int, before: int, after: int) -> Iterator[Cut]:
    """Return the slices before, within and after along an axis of ``n`` elements."""
    edge = int(op.mode == MirrorPadMode.REFLECT)
    if before:
        yield slice(0, before), _mirror(edge, edge + before)
    yield slice(before, before + n), slice(None)
    if after:
        yield slice(before + n, None), _mirror(n - edge - after, n - edge)


def _mirror(first: int, end: int) -> slice:
    """Return the slice from the last element before ``end`` down to the first."""
    return slice(end - 1, first - 1 if first else None, -1)


@native(MirrorPad, *ANY)
def build(op: MirrorPad, context: Context) -> NativeStep | None:
    """Copy each box, where paddings are known when the model is loaded."""
    x, paddings = context.operands
    if x is None or paddings is None or not op.paddings.is_constant:
        return None
    return copy.step(_boxes(op, context.results[0], x, padding_pairs(paddings, x.ndim)))


@portable(MirrorPad, *MOVED)
def in_c(op: MirrorPad, context: PortableContext) -> list[CCall]:
    """Copy the elements that mirrors show along each axis."""
    pairs = padding_pairs(context.constant(op.paddings), len(op.input.dims))
    seen = [
        np.concatenate([np.arange(n)[source] for _, source in _cuts(op, n, *pair)])
        for n, pair in zip(op.input.dims, pairs, strict=True)
    ]
    return [pick(op.input, op.results[0], seen)]
