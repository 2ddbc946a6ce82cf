"""ADD_N kernels."""

from __future__ import annotations

from functools import reduce

import numpy as np

from luciole.ir import Array
from luciole.ir.ops.add_n import AddN
from luciole.ir.rules import by_axis, same_extent
from luciole.kernels.core.registry import reference
from luciole.kernels.elementwise_binary import NUMBERS


@reference(AddN, *NUMBERS)
def add_n(op: AddN, inputs: tuple[Array, ...]) -> Array:
    """Add the operands one after the other, in their own type: integers wrap."""
    for axis, extents in enumerate(by_axis([x.shape for x in inputs])):
        same_extent(axis, extents)
    return np.array(reduce(np.add, inputs), inputs[0].dtype)
