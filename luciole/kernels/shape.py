"""SHAPE kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array
from luciole.ir.dtypes import NUMPY
from luciole.ir.ops.shape import Shape
from luciole.kernels.core.registry import ANYTHING, reference


@reference(Shape, *ANYTHING)
def shape(op: Shape, x: Array) -> Array:
    """Return the extents; the elements are not looked at."""
    return np.array(x.shape, NUMPY[op.infer_dtype()])
