"""UNPACK kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array
from luciole.ir.ops.unpack import Unpack, unpacked
from luciole.kernels.core.contract import Context, NativeStep
from luciole.kernels.core.registry import ANY, native, reference
from luciole.kernels.elements import copy
from luciole.kernels.portable.calls import CCall, PortableContext, portable
from luciole.kernels.portable.moves import TYPES as MOVED
from luciole.kernels.portable.moves import take


@reference(Unpack, *ANY)
def unpack(op: Unpack, value: Array) -> tuple[Array, ...]:
    """Copy each element of the axis."""
    unpacked(value.shape, op.axis, op.num)
    return tuple(part.copy() for part in np.moveaxis(value, op.axis, 0))


@native(Unpack, *ANY)
def build(op: Unpack, context: Context) -> NativeStep | None:
    """Copy each element of the axis into its result."""
    value = context.operands[0]
    if value is None:
        return None
    parts = np.moveaxis(value, op.axis, 0)
    return copy.step((y, parts[i, ...]) for i, y in enumerate(context.results))


@portable(Unpack, *MOVED)
def in_c(op: Unpack, context: PortableContext) -> list[CCall]:
    """Copy each part."""
    del context

    def part(number: int) -> CCall:
        return take(op.value, op.results[number], lambda x: np.moveaxis(x, op.axis, 0)[number, ...])

    return [part(number) for number in range(len(op.results))]
