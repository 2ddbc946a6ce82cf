"""ONE_HOT kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array
from luciole.ir.ops.one_hot import OneHot, spread
from luciole.ir.rules import agree, integers
from luciole.kernels.core.limits import affordable
from luciole.kernels.core.registry import ANY, reference


@reference(OneHot, *ANY)
def one_hot(op: OneHot, indices: Array, depth: Array, on: Array, off: Array) -> Array:
    """Set the element of each index; indices out of range give rows of ``off_value``."""
    for name, value in (("on_value", on), ("off_value", off)):
        agree("elements", value.size, 1, name, "a vector's element")
    (count,) = integers(depth, "depth", 1)
    affordable(op, spread(indices.shape, (count,), op.axis))
    flat = indices.reshape(-1)
    vectors = np.full((flat.size, count), off.reshape(()))
    inside = np.flatnonzero((flat >= 0) & (flat < count))
    vectors[inside, flat[inside]] = on.reshape(())
    result = np.moveaxis(vectors.reshape(*indices.shape, count), -1, op.axis)
    return np.ascontiguousarray(result)
