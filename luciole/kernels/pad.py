"""PAD and PADV2 kernels."""

from __future__ import annotations

from types import EllipsisType

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops.pad import Pad, PadV2, padding_pairs
from luciole.ir.quantization import zero_code
from luciole.ir.rules import agree
from luciole.kernels.core.contract import Built, Context, NativeStep
from luciole.kernels.core.limits import affordable
from luciole.kernels.core.reasons import Declined, accepted
from luciole.kernels.core.registry import native, reference
from luciole.kernels.elements import copy
from luciole.kernels.elements.borders import inside, slabs
from luciole.kernels.portable.calls import CCall, PortableContext, portable
from luciole.kernels.portable.moves import TYPES as MOVED
from luciole.kernels.portable.moves import surround

TYPES = (
    TensorType.FLOAT32,
    TensorType.FLOAT16,
    TensorType.INT64,
    TensorType.INT32,
    TensorType.INT16,
    TensorType.INT8,
    TensorType.UINT8,
    TensorType.BOOL,
)


@reference(Pad, *TYPES)
def pad(op: Pad, x: Array, paddings: Array) -> Array:
    """Surround the operand with zeros (the zero point where it is quantized)."""
    return _padded(op, x, paddings, np.array(zero_code(op.output), x.dtype))


@reference(PadV2, *TYPES)
def pad_v2(op: PadV2, x: Array, paddings: Array, constant_values: Array) -> Array:
    """Surround the operand with the constant."""
    agree("elements", constant_values.size, 1, "constant_values", "a padding value")
    return _padded(op, x, paddings, constant_values.reshape(()))


def _padded(op: Pad | PadV2, x: Array, paddings: Array, value: Array) -> Array:
    borders = list(zip(x.shape, padding_pairs(paddings, x.ndim), strict=True))
    shape = affordable(op, tuple(before + n + after for n, (before, after) in borders))
    y = np.full(shape, value, x.dtype)
    y[tuple(slice(before, before + n) for n, (before, _) in borders)] = x
    return y


@native(Pad, *TYPES)
def build_pad(op: Pad, context: Context) -> Built:
    """Copy the operand, and slabs of zeros around it."""
    zero = accepted(zero_code, op.output)
    if isinstance(zero, Declined):
        return zero
    return _step(op, context, np.array(zero, context.results[0].dtype))


@native(PadV2, *TYPES)
def build_pad_v2(op: PadV2, context: Context) -> NativeStep | None:
    """Copy the operand, and slabs of the constant around it."""
    value = context.operands[2]
    if value is None or value.size != 1 or not op.constant_values.is_constant:
        return None
    return _step(op, context, value.reshape(()))


def _step(op: Pad | PadV2, context: Context, value: Array) -> NativeStep | None:
    x, paddings = context.operands[:2]
    if x is None or paddings is None or not op.paddings.is_constant:
        return None
    y, pairs = context.results[0], padding_pairs(paddings, x.ndim)
    box = inside(x.shape, pairs)
    whole: tuple[slice | EllipsisType, ...] = (*box, ...)  # a view also of a scalar
    around, owns = slabs(y, box, value)
    return copy.step([(y[whole], x), *around], *owns)


@portable(Pad, *MOVED)
def pad_in_c(op: Pad, context: PortableContext) -> list[CCall]:
    """Fill the result with zeros, and copy the operand into it."""
    pairs = padding_pairs(context.constant(op.paddings), len(op.input.dims))
    return surround(op.input, op.results[0], pairs, zero_code(op.output))


@portable(PadV2, *MOVED)
def pad_v2_in_c(op: PadV2, context: PortableContext) -> list[CCall]:
    """Fill the result with the constant, and copy the operand into it."""
    pairs = padding_pairs(context.constant(op.paddings), len(op.input.dims))
    value = context.constant(op.constant_values)
    agree("elements", value.size, 1, "constant_values", "a padding value")
    return surround(op.input, op.results[0], pairs, value.reshape(()))
