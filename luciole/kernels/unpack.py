"""UNPACK kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array
from luciole.ir.ops.unpack import Unpack, unpacked
from luciole.kernels.registry import ANY, reference


@reference(Unpack, *ANY)
def unpack(op: Unpack, value: Array) -> tuple[Array, ...]:
    """A copy of each element of the axis."""
    unpacked(value.shape, op.axis, op.num)
    return tuple(part.copy() for part in np.moveaxis(value, op.axis, 0))
