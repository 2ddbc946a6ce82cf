"""PRELU kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops.prelu import PRelu
from luciole.kernels.core.registry import reference
from luciole.kernels.elements import binary
from luciole.kernels.formulas.elementwise import Binary


@reference(PRelu, TensorType.FLOAT32)
def prelu(op: PRelu, x: Array, alpha: Array) -> Array:
    """Return x where it is not negative, else alpha x."""
    with np.errstate(all="ignore"):
        return np.where(x >= 0, x, x * alpha)


binary.register(PRelu, Binary.PRELU)
