"""BITCAST kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.dtypes import NUMPY, tensor_type
from luciole.ir.ops.bitcast import Bitcast, recast
from luciole.ir.rules import settled
from luciole.kernels.core.contract import Context, NativeStep
from luciole.kernels.core.registry import ANY, native, reference
from luciole.kernels.elements import copy


@reference(Bitcast, *ANY)
def bitcast(op: Bitcast, x: Array) -> Array:
    """Copy the bytes; a BOOL is true unless its byte is 0."""
    after = op.output.dtype
    shape = settled(recast(x.shape, tensor_type(x.dtype), after))
    octets = np.ascontiguousarray(x).reshape(-1).view(np.uint8)
    made = octets != 0 if after == TensorType.BOOL else octets.view(NUMPY[after])
    return made.reshape(shape).copy()


@native(Bitcast, *ANY)
def build(op: Bitcast, context: Context) -> NativeStep | None:
    """Copy the bytes as they are."""
    x, y = context.operands[0], context.results[0]
    if x is None or y.dtype == np.bool_:
        return None
    return copy.step([(y.reshape(-1).view(np.uint8), x.reshape(-1).view(np.uint8))])
