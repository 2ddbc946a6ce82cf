"""WHERE kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array
from luciole.ir.ops.where import Where
from luciole.kernels.core.registry import ANY, reference


@reference(Where, *ANY)
def where(op: Where, condition: Array) -> Array:
    """List the coordinates of elements that are not 0, row by row; NaN is not 0."""
    return np.argwhere(condition).astype(np.int64)
