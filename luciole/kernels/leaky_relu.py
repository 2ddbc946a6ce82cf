"""LEAKY_RELU kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops.leaky_relu import LeakyRelu
from luciole.kernels.core.registry import reference
from luciole.kernels.elements import unary
from luciole.kernels.formulas.elementwise import Applied, define_parametric


@reference(LeakyRelu, TensorType.FLOAT32)
def leaky_relu(op: LeakyRelu, x: Array) -> Array:
    """Return x where it is positive, else alpha x."""
    with np.errstate(all="ignore"):
        return np.where(x > 0, x, x * x.dtype.type(op.alpha))


FORMULA = define_parametric("LeakyRelu", lambda x, a, b: x.where(x.compared(">", 0.0), x * a))


@unary.by_attributes(LeakyRelu)
def chosen(op: LeakyRelu) -> Applied:
    """Choose the formula, with the operator's alpha."""
    return Applied(FORMULA, op.alpha)
