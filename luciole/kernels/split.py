"""SPLIT kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array
from luciole.ir.ops.split import Split, part_of
from luciole.ir.rules import integers
from luciole.kernels.core.contract import Context, NativeStep
from luciole.kernels.core.registry import ANY, native, reference
from luciole.kernels.elements import copy
from luciole.kernels.portable.calls import CCall, PortableContext, portable
from luciole.kernels.portable.moves import TYPES as MOVED
from luciole.kernels.portable.moves import take


@reference(Split, *ANY)
def split(op: Split, split_dim: Array, x: Array) -> tuple[Array, ...]:
    """Copy each part."""
    return tuple(part.copy() for part in _parts(op, split_dim, x))


def _parts(op: Split, split_dim: Array, x: Array) -> list[Array]:
    """Return views of the parts."""
    place = integers(split_dim, "split_dim", 1)
    part_of(x.shape, place, op.num_splits)
    return np.split(x, op.num_splits, axis=place[0])


@native(Split, *ANY)
def build(op: Split, context: Context) -> NativeStep | None:
    """Copy the parts of the axis, where that is known when the model is loaded."""
    split_dim, x = context.operands
    if x is None or split_dim is None or not op.split_dim.is_constant:
        return None
    return copy.step(zip(context.results, _parts(op, split_dim, x), strict=True))


@portable(Split, *MOVED)
def in_c(op: Split, context: PortableContext) -> list[CCall]:
    """Copy each part."""
    place = context.constant(op.split_dim)

    def part(number: int) -> CCall:
        return take(op.input, op.results[number], lambda x: _parts(op, place, x)[number])

    return [part(number) for number in range(len(op.results))]
