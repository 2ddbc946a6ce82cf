"""CONCATENATION kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops.concatenation import Concatenation, concatenated
from luciole.kernels.activation import activate
from luciole.kernels.registry import reference


# Quantized types are not here: inputs of different scales would have to be requantized.
@reference(Concatenation, TensorType.FLOAT32, TensorType.INT32, TensorType.INT64, TensorType.BOOL)
def concatenation(op: Concatenation, inputs: tuple[Array, ...]) -> Array:
    """One after the other."""
    concatenated([x.shape for x in inputs], op.axis)
    return activate(np.concatenate(inputs, axis=op.axis), op.activation)
