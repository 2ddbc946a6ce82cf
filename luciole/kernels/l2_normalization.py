"""L2_NORMALIZATION kernels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array, LucioleError, TensorType, UnsupportedError, Value
from luciole.ir.analysis.fixed_point import (
    fixed_result,
    high_multiply,
    multiply,
    rounding_divide,
)
from luciole.ir.ops.l2_normalization import L2Normalization
from luciole.ir.quantization import per_tensor
from luciole.ir.value import element_count
from luciole.kernels.arrays.fused_activation import activate
from luciole.kernels.core.limits import room
from luciole.kernels.core.registry import reads, reference
from luciole.kernels.portable.calls import CCall, Field, PortableContext, portable
from luciole.kernels.portable.floats import activated
from luciole.schema.enums import ActivationFunctionType

EPSILON = 1e-6
"""Number that shorter vectors are divided by."""

OUTPUT_BITS = 7
"""Bits of integer results behind the point: they cover [-1, 1)."""

MOST = (1 << 31) - 1
THREE_HALVES = 3 << 27
"""1.5 with 28 bits behind the point."""

HALF_SQRT_2 = 1518500250
"""sqrt(2) / 2 with 31 bits behind the point."""


@reference(L2Normalization, TensorType.FLOAT32)
def l2_normalization(op: L2Normalization, x: Array) -> Array:
    """Divide each vector by its length, in double precision."""
    wide = x.astype(np.float64)
    length = np.sqrt((wide * wide).sum(axis=-1, keepdims=True))
    return activate(np.asarray(wide / np.maximum(length, EPSILON), x.dtype), op.activation)


@reference(L2Normalization, TensorType.INT8, TensorType.UINT8)
def l2_normalization_integers(op: L2Normalization, x: Array) -> Array:
    """Scale each vector by one factor, from an inverse square root of integers: TFLite's
    arithmetic.
    """
    if op.activation != ActivationFunctionType.NONE:
        raise UnsupportedError(f"fused activation {op.activation.name} is not supported")
    _check_result(op)
    _, zero_point = per_tensor(op.input, "the input")
    room(24 * x.size, "the numbers and their squares")
    centred = x.astype(np.int64) - zero_point
    multiplier, down = inverse_sqrt((centred * centred).sum(axis=-1, keepdims=True))
    if op.input.dtype == TensorType.UINT8:
        scaled = multiply(centred << OUTPUT_BITS, multiplier, -down)
    else:
        scaled = multiply(centred, multiplier, OUTPUT_BITS - down)
    limits = np.iinfo(x.dtype)
    _, result_zero = fixed_result(op, op.input.dtype)
    return np.clip(scaled + result_zero, limits.min, limits.max).astype(x.dtype)


@reads(L2Normalization, TensorType.INT8, TensorType.UINT8)
def _check_result(op: L2Normalization) -> None:
    """Raise LucioleError for results whose integers stand for other numbers than these here."""
    needed, needed_zero = fixed_result(op, op.input.dtype)
    scale, zero_point = per_tensor(op.output, "the result")
    if scale != needed or zero_point != needed_zero:
        raise LucioleError(
            f"the result has scale {scale:g} and zero point {zero_point}, "
            f"{needed} and {needed_zero} are needed"
        )


def inverse_sqrt(x: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Compute 1 / sqrt(x) as multiplier / 2^31 / 2^shift: TFLite's
    GetInvSqrtQuantizedMultiplierExp.

    Five Newton steps y (3 - x y^2) / 2 in fixed point with 3 bits in front of the point. 0 is taken
    for 1, whose multiplier is the largest there is.
    """
    small, shift = x <= 1, np.full(x.shape, 11, np.int64)
    x = np.maximum(x, 2)
    while (large := x >= 1 << 29).any():
        x, shift = np.where(large, x // 4, x), shift + large
    pairs = (31 - np.frexp(x.astype(np.float64))[1]) // 2 - 1
    x, shift = (x << 2 * pairs) >> 1, shift - pairs
    half, y = rounding_divide(x, 1), np.full(x.shape, 1 << 28, np.int64)
    for _ in range(5):
        cube = _raised(high_multiply(high_multiply(y, y), y), 6)
        difference = high_multiply(THREE_HALVES, y).astype(np.int64) - high_multiply(half, cube)
        y = _raised(difference, 3)
    y = high_multiply(y, HALF_SQRT_2).astype(np.int64) << np.maximum(-shift, 0)
    return np.where(small, MOST, y), np.where(small, 0, np.maximum(shift, 0))


def _raised(x: Array, bits: int) -> NDArray[np.int64]:
    """Compute x 2^bits, saturated to 32 bits."""
    return np.asarray(np.clip(x.astype(np.int64) << bits, -MOST - 1, MOST))


@portable(L2Normalization, TensorType.FLOAT32)
def in_c(op: L2Normalization, context: PortableContext) -> list[CCall]:
    """Call the normalization of rows of floats."""
    del context
    x = op.input
    fields: dict[str, Field] = {"rows": element_count(x.dims[:-1]), "depth": x.dims[-1]}

    def divided(y: Value) -> CCall:
        return CCall("luc_l2_normalization", fields | {"least": EPSILON}, (x,), (y,))

    return activated(op.activation, op.results[0], divided)
