"""CUMSUM kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array
from luciole.ir.ops.cumsum import Cumsum
from luciole.ir.rules import axis, integers
from luciole.kernels.core.registry import reference
from luciole.kernels.elementwise_binary import NUMBERS
from luciole.kernels.portable import plain
from luciole.kernels.portable.calls import CCall, PortableContext, portable


@reference(Cumsum, *NUMBERS)
def cumsum(op: Cumsum, x: Array, place: Array) -> Array:
    """Add elements one after the other, in the operand's type: integers wrap."""
    along = axis(integers(place, "axis", 1)[0], x.ndim)
    lines = np.moveaxis(x, along, -1)
    lines = lines[..., ::-1] if op.reverse else lines
    sums = np.cumsum(lines, axis=-1, dtype=x.dtype)
    if op.exclusive:
        sums = np.concatenate([np.zeros_like(sums[..., :1]), sums[..., :-1]], axis=-1)
    sums = sums[..., ::-1] if op.reverse else sums
    return np.ascontiguousarray(np.moveaxis(sums, -1, along))


@portable(Cumsum, *NUMBERS)
def in_c(op: Cumsum, context: PortableContext) -> list[CCall]:
    """Add along the axis, line by line."""
    x = op.input
    along = axis(integers(context.constant(op.axis), "axis", 1)[0], len(x.dims))
    fields = plain.lines(x, [along]) | {"without": int(op.exclusive), "backwards": int(op.reverse)}
    name = f"luc_running_sum_{plain.suffix(x.dtype)}"
    return [CCall(name, fields, (x,), op.results, layout="luc_running")]
