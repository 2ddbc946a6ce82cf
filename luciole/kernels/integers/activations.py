"""LOGISTIC and TANH kernels for quantized tensors of 16 bits: lines between the entries of TFLite's
table of the logistic function.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array, LucioleError, Op, TensorType, Value
from luciole.ir.analysis.fixed_point import fixed_result
from luciole.ir.ops import activations
from luciole.ir.value import element_count
from luciole.kernels.core.registry import reads, reference
from luciole.kernels.elements import lookups
from luciole.kernels.integers.elementwise_unary import parameters
from luciole.kernels.portable.calls import CCall, Field, PortableContext, portable

INT16 = TensorType.INT16

ONE_MORE = (
    *(4, 8, 12, 14, 15, 16, 17, 19, 20, 21, 22, 25, 27, 28, 29, 30, 31, 33, 34, 35, 37, 39, 40),
    *(41, 43, 44, 45, 46, 49, 50, 54, 62, 63, 64, 66, 82, 86, 93, 100, 103, 112, 116, 135, 255),
)
"""Where TFLite's table of the logistic function is 1 above the nearest integer."""


def sigmoid_table() -> NDArray[np.int64]:
    """Compute 2^16 / (1 + e^(-i / 24)) for i from 0 to 255, as TFLite's sigmoid_table_uint16 has
    it.
    """
    table = np.rint(2.0**16 / (1 + np.exp(-np.arange(256) / 24))).astype(np.int64)
    table[list(ONE_MORE)] += 1
    return table


def _bend(op: Op, finest: int) -> tuple[int, int]:
    """Return multiplier and bits that bring 16 bits to units of 1 / (3 * 4096), multiplier 0 where
    the scale is a power of two that needs but a shift of up to ``finest``.

    Raises LucioleError for other results than those in units of 2^-15.
    """
    scale, zero_point, to, to_zero = parameters(op)
    if (float(to), to_zero) != fixed_result(op, INT16) or zero_point:
        scales = f"{to} and zero points {zero_point} and {to_zero}"
        raise LucioleError(f"the result's scale is {scales}; 2^-15 and 0 are needed for 16 bits")
    exponent = np.log2(scale)
    shift = 12 + int(np.rint(exponent))
    if abs(exponent - np.rint(exponent)) < 1e-3 and 0 <= shift <= finest:
        return 0, shift
    multiplier, shift = float(scale) * 4096 * 3, 0
    while multiplier <= 32767 / 2 and shift <= 30:
        multiplier, shift = 2 * multiplier, shift + 1
    return int(multiplier), shift


def _bent(x: Array, multiplier: int, shift: int) -> Array:
    """Compute x multiplier / 2^shift, halves up; products wrap around at 32 bits."""
    half = 1 << (shift - 1) if shift else 0
    return (x.astype(np.int64) * multiplier + half).astype(np.int32).astype(np.int64) >> shift


def _between(units: Array, fraction: int) -> Array:
    """Interpolate 2^16 sigmoid between two entries of the table, for numbers that are not negative,
    in units of 2^-fraction.
    """
    table, at = sigmoid_table(), units >> fraction
    here = np.minimum(at, 254)
    rest = units & ((1 << fraction) - 1)
    sigmoid = (table[here] << fraction) + rest * (table[here + 1] - table[here])
    return np.where(at >= 255, 0, sigmoid)


@reads(activations.Logistic, INT16)
@reads(activations.Tanh, INT16)
def _check(op: Op) -> None:
    """Raise LucioleError for scales that neither table is of."""
    _bend(op, 0)


@reference(activations.Logistic, INT16)
def logistic(op: activations.Logistic, x: Array) -> Array:
    """Interpolate TFLite's table of 256 entries."""
    multiplier, shift = _bend(op, 0)
    if not multiplier:
        multiplier, shift = 3 << shift, 0
    units = _bent(x, multiplier, shift)
    size = np.abs(units)
    sigmoid = np.where(size >> 9 >= 255, 0x7FFF << 10, _between(size, 9))
    return ((np.where(units >= 0, sigmoid, (1 << 25) - sigmoid - 1) + (1 << 9)) >> 10).astype(
        np.int16
    )


@reference(activations.Tanh, INT16)
def tanh(op: activations.Tanh, x: Array) -> Array:
    """Interpolate TFLite's table of the sigmoid: tanh(x) = 2 sigmoid(2 x) - 1."""
    multiplier, shift = _bend(op, 1)
    if multiplier:
        units = _bent(x, multiplier, shift)
        size = np.abs(units)
    else:
        units = x.astype(np.int64) << shift
        size = 3 * np.abs(units)
    sigmoid = np.where(size >> 8 >= 255, 0xFFFF << 8, _between(size, 8))
    above = np.where(units >= 0, sigmoid - (1 << 23) + 128, -sigmoid + (1 << 23) + 127)
    return (above >> 8).astype(np.int16)


lookups.register(activations.Logistic, INT16)
lookups.register(activations.Tanh, INT16)


def _in_c(function: str, x: Value, y: Value, bend: tuple[int, int]) -> list[CCall]:
    """Call a function of halfwords, which looks TFLite's table up."""
    multiplier, shift = bend
    if not multiplier:
        multiplier, shift = 3 << shift, 0
    fields: dict[str, Field] = {"count": element_count(x.dims), "sigmoids": sigmoid_table()}
    fields |= {"multiplier": multiplier, "shift": shift}
    return [CCall(function, fields, (x,), (y,), layout="luc_by_sigmoids")]


@portable(activations.Logistic, INT16)
def logistic_in_c(op: activations.Logistic, context: PortableContext) -> list[CCall]:
    """Call the logistic function of halfwords."""
    del context
    return _in_c("luc_logistic_by_sigmoids", op.x, op.output, _bend(op, 0))


@portable(activations.Tanh, INT16)
def tanh_in_c(op: activations.Tanh, context: PortableContext) -> list[CCall]:
    """Call TANH of halfwords."""
    del context
    return _in_c("luc_tanh_by_sigmoids", op.x, op.output, _bend(op, 1))
