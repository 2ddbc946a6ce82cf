"""LEAKY_RELU kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops.leaky_relu import LeakyRelu
from luciole.kernels.core.contract import Context, NativeStep
from luciole.kernels.core.registry import native, reference
from luciole.kernels.elements import unary
from luciole.kernels.jit.vector.elementwise import define_parametric


@reference(LeakyRelu, TensorType.FLOAT32)
def leaky_relu(op: LeakyRelu, x: Array) -> Array:
    """Return x where it is positive, else alpha x."""
    with np.errstate(all="ignore"):
        return np.where(x > 0, x, x * x.dtype.type(op.alpha))


FORMULA = define_parametric("LeakyRelu", lambda x, a, b: x.where(x.compared(">", 0.0), x * a))


@native(LeakyRelu, TensorType.FLOAT32)
def build(op: LeakyRelu, context: Context) -> NativeStep:
    """Apply the formula to all elements, alpha in the record."""
    return unary.step(FORMULA, context.operands[0], context.results[0], op.alpha)
