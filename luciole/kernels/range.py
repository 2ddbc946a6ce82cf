"""RANGE kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array
from luciole.ir.ops.range import Range, length
from luciole.ir.rules import agree
from luciole.kernels.core.limits import affordable
from luciole.kernels.core.registry import reference
from luciole.kernels.elementwise_binary import NUMBERS


@reference(Range, *NUMBERS)
def range_(op: Range, start: Array, limit: Array, delta: Array) -> Array:
    """Add delta to each number to get the next one, rounded."""
    for name, array in (("start", start), ("limit", limit), ("delta", delta)):
        agree("elements", array.size, 1, name, "a range")
    steps = np.full(affordable(op, (length(start, limit, delta),)), delta.reshape(()))
    steps[:1] = start.reshape(())
    return np.cumsum(steps, dtype=start.dtype)
