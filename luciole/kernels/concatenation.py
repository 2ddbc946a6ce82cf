"""CONCATENATION kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, TensorType, UnsupportedError, Value
from luciole.ir.dtypes import NUMPY
from luciole.ir.ops.concatenation import Concatenation, concatenated
from luciole.ir.quantization import is_affine, per_tensor, rounded
from luciole.ir.value import element_count
from luciole.kernels.arrays.fused_activation import activate
from luciole.kernels.core.contract import Built, Context
from luciole.kernels.core.reasons import Declined, accepted
from luciole.kernels.core.registry import native, reference
from luciole.kernels.elements import copy
from luciole.kernels.fixed_point.functions import saturated
from luciole.kernels.portable.calls import CCall, Field, PortableContext, made, portable
from luciole.kernels.portable.moves import TYPES as MOVED
from luciole.kernels.portable.moves import place
from luciole.schema.enums import ActivationFunctionType

SMALL = (TensorType.INT8, TensorType.UINT8, TensorType.INT16)
TYPES = (
    TensorType.FLOAT32,
    TensorType.FLOAT16,
    TensorType.INT64,
    TensorType.INT32,
    TensorType.UINT32,
    TensorType.BOOL,
    *SMALL,
)


@reference(Concatenation, *TYPES)
def concatenation(op: Concatenation, inputs: tuple[Array, ...]) -> Array:
    """Join the operands along an axis; quantized ones are brought to the result's scale and zero
    point.
    """
    concatenated([x.shape for x in inputs], op.axis)
    moved = [requantized(value, x, op.output) for value, x in zip(op.inputs, inputs, strict=True)]
    return activate(np.concatenate(moved, axis=op.axis), op.activation)


def differ(value: Value, result: Value) -> bool:
    """Return whether 8 or 16 bit integers of a tensor stand for other numbers in the result."""
    if value.dtype not in SMALL or not (is_affine(value) and is_affine(result)):
        return False
    return per_tensor(value, "an input") != per_tensor(result, "the result")


def requantized(value: Value, x: Array, result: Value) -> Array:
    """Bring integers to the result's scale and zero point, in single precision as TFLite does it
    for UINT8. (INT8 and INT16 of another grid it refuses.)
    """
    if not differ(value, result):
        return x
    (scale, zero_point), (to, to_zero) = per_tensor(value, "an input"), per_tensor(result, "")
    factor = scale * (np.float32(1) / to)
    steps = rounded(x.astype(np.float32) * factor + np.float32(-zero_point) * factor)
    return saturated(steps, to_zero, x)


@native(Concatenation, *TYPES)
def build(op: Concatenation, context: Context) -> Built:
    """Copy each operand into its part of the result; None with a fused activation, or where numbers
    change.
    """
    alike = accepted(_alike, op)
    if isinstance(alike, Declined):
        return alike
    if op.activation != ActivationFunctionType.NONE or not alike:
        return None
    y, operands = context.results[0], [x for x in context.operands if x is not None]
    ends = np.cumsum([x.shape[op.axis] for x in operands])[:-1]
    return copy.step(zip(np.split(y, ends.tolist(), axis=op.axis), operands, strict=True))


def _alike(op: Concatenation) -> bool:
    return not any(differ(value, op.output) for value in op.inputs)


@portable(Concatenation, *MOVED)
def in_c(op: Concatenation, context: PortableContext) -> list[CCall]:
    """Copy each operand into its part of the result."""
    del context
    y = op.results[0]
    if op.activation != ActivationFunctionType.NONE:
        raise UnsupportedError("an activation has no C form here")
    axis, calls, begun = op.axis % len(y.dims), [], 0
    for x in op.inputs:
        first = [begun if a == axis else 0 for a in range(len(y.dims))]
        begun += x.dims[axis]
        if differ(x, y):
            calls.append(_moved(x, y))
            (x,) = calls[-1].writes
        calls.append(place(x, y, first))
    return calls


def _moved(x: Value, y: Value) -> CCall:
    """Look up what bytes are on the result's grid. Raises UnsupportedError for more than 8 bits."""
    if x.dtype == TensorType.INT16:
        raise UnsupportedError("operands of 16 bits on other grids have no C form")
    table = requantized(x, np.arange(256, dtype=np.uint8).view(NUMPY[x.dtype]), y)
    fields: dict[str, Field] = {"count": element_count(x.dims), "table": table.view(np.uint8)}
    return CCall("luc_bytes_of_bytes", fields, (x,), (made(x, "moved", x.dtype),))
