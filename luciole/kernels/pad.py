"""PAD and PADV2 kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops.pad import Pad, PadV2, padding_pairs
from luciole.ir.rules import agree
from luciole.kernels.registry import reference

# Quantized types are not here: their padding is the zero point, not 0.
TYPES = (TensorType.FLOAT32, TensorType.INT32, TensorType.INT64, TensorType.BOOL)


@reference(Pad, *TYPES)
def pad(op: Pad, x: Array, paddings: Array) -> Array:
    """Zeros, with the operand inside."""
    return _padded(x, paddings, x.dtype.type(0))


@reference(PadV2, *TYPES)
def pad_v2(op: PadV2, x: Array, paddings: Array, constant_values: Array) -> Array:
    """The constant, with the operand inside."""
    agree("elements", constant_values.size, 1, "constant_values", "a padding value")
    return _padded(x, paddings, constant_values.reshape(()))


def _padded(x: Array, paddings: Array, value: Array) -> Array:
    borders = list(zip(x.shape, padding_pairs(paddings, x.ndim), strict=True))
    y = np.full([before + n + after for n, (before, after) in borders], value, x.dtype)
    y[tuple(slice(before, before + n) for n, (before, _) in borders)] = x
    return y
