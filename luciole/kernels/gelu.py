"""GELU kernels."""

from __future__ import annotations

import math

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops.gelu import Gelu
from luciole.kernels.core.registry import reference
from luciole.kernels.elements import unary
from luciole.kernels.formulas.elementwise import Applied, Unary


def erfc(x: Array) -> Array:
    """Compute 1 - erf(x) in double precision, element by element: NumPy has no error function."""
    return np.fromiter(map(math.erfc, x.flat), np.float64, x.size).reshape(x.shape)


@reference(Gelu, TensorType.FLOAT32, TensorType.FLOAT16)
def gelu(op: Gelu, x: Array) -> Array:
    """Compute the function in double precision.

    x (1 + erf(x / sqrt 2)) / 2, approximately x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2.
    """
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        if op.approximate:
            y = wide * (1 + np.tanh(math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3))) / 2
        else:
            y = wide * erfc(wide * -math.sqrt(0.5)) / 2
        return np.asarray(y, x.dtype)


@unary.by_attributes(Gelu)
def chosen(op: Gelu) -> Applied:
    """Choose the function, in single precision."""
    return Applied(Unary.GELU_BY_TANH if op.approximate else Unary.GELU)
