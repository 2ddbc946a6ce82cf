"""CONCATENATION kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops.concatenation import Concatenation, concatenated
from luciole.kernels import moves
from luciole.kernels.activation import activate
from luciole.kernels.registry import Context, NativeStep, native, reference
from luciole.schema.enums import ActivationFunctionType

# Quantized types are not here: inputs of different scales would have to be requantized.
TYPES = (TensorType.FLOAT32, TensorType.INT32, TensorType.INT64, TensorType.BOOL)


@reference(Concatenation, *TYPES)
def concatenation(op: Concatenation, inputs: tuple[Array, ...]) -> Array:
    """One after the other."""
    concatenated([x.shape for x in inputs], op.axis)
    return activate(np.concatenate(inputs, axis=op.axis), op.activation)


@native(Concatenation, *TYPES)
def build(op: Concatenation, context: Context) -> NativeStep | None:
    """Each operand into its part of the result; not with an activation behind it."""
    if op.activation != ActivationFunctionType.NONE:
        return None
    y, given = context.results[0], [x for x in context.operands if x is not None]
    ends = np.cumsum([x.shape[op.axis] for x in given])[:-1]
    return moves.step(zip(np.split(y, ends.tolist(), axis=op.axis), given, strict=True))
