"""PAD and PADV2 kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops.pad import Pad, PadV2, padding_pairs
from luciole.ir.rules import agree
from luciole.kernels import moves
from luciole.kernels.registry import Context, NativeStep, native, reference

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


@native(Pad, *TYPES)
def build_pad(op: Pad, context: Context) -> NativeStep | None:
    """The operand, and slabs of zeros around it."""
    return _step(op, context, np.zeros((), context.results[0].dtype))


@native(PadV2, *TYPES)
def build_pad_v2(op: PadV2, context: Context) -> NativeStep | None:
    """The operand, and slabs of the constant around it."""
    value = context.operands[2]
    if value is None or value.size != 1 or not op.constant_values.is_constant:
        return None
    return _step(op, context, value.reshape(()))


def _step(op: Pad | PadV2, context: Context, value: Array) -> NativeStep | None:
    x, paddings = context.operands[:2]
    if x is None or paddings is None or not op.paddings.is_constant:
        return None
    y, pairs = context.results[0], padding_pairs(paddings, x.ndim)
    inside = tuple(slice(b, b + n) for n, (b, _) in zip(x.shape, pairs, strict=True))
    moved, owns = [(y[inside], x)], []
    for axis, within in enumerate(inside):
        for beside in (slice(0, within.start), slice(within.stop, None)):
            slab = y[(*inside[:axis], beside)]
            owns.append(np.full(slab.shape[axis:], value))
            moved.append((slab, np.broadcast_to(owns[-1], slab.shape)))
    return moves.step(moved, *owns)
