"""Kernels of the binary element-wise operators."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from luciole.ir import Array, LucioleError, TensorType, UnsupportedError
from luciole.ir.ops import elementwise_binary as ops
from luciole.kernels.arrays.fused_activation import activate
from luciole.kernels.core.contract import Context, NativeStep
from luciole.kernels.core.reasons import Declined
from luciole.kernels.core.registry import native, reference
from luciole.kernels.elements import binary, plain_integers
from luciole.kernels.elements.plain_integers import Integers
from luciole.kernels.formulas.elementwise import Binary
from luciole.kernels.portable import plain
from luciole.kernels.portable.calls import CCall, PortableContext, portable
from luciole.schema.enums import ActivationFunctionType

NUMBERS = (TensorType.FLOAT32, TensorType.INT32, TensorType.INT64)
INTEGERS = (TensorType.INT32, TensorType.INT64)
SMALL = (TensorType.INT8, TensorType.INT16)
BITS = (TensorType.UINT8, TensorType.UINT16, TensorType.UINT32, *SMALL, *INTEGERS)

FURTHER = (TensorType.FLOAT16, TensorType.UINT32, TensorType.COMPLEX64)
"""Further types that LiteRT multiplies."""

Function = Callable[[Array, Array], Array]


def truncated_quotient(x: Array, y: Array) -> Array:
    """Divide integers toward zero, as in C; y has no zeros. The lowest integer / -1 wraps."""
    return np.asarray((x - np.fmod(x, y)) // y, x.dtype)


def refuse_zeros(divisors: Array) -> None:
    """Raise LucioleError when a divisor is 0."""
    zeros = divisors.size - np.count_nonzero(divisors)
    if zeros:
        raise LucioleError(f"{zeros} of {divisors.size} divisors are 0, integers need others")


def _arithmetic(cls: type[ops.Arithmetic], function: Function, *types: TensorType) -> None:
    @reference(cls, *types)
    def kernel(op: ops.Arithmetic, x: Array, y: Array) -> Array:
        with np.errstate(all="ignore"):
            return activate(np.asarray(function(x, y), x.dtype), op.activation)


_arithmetic(ops.Add, np.add, *NUMBERS, TensorType.FLOAT16)
_arithmetic(ops.Sub, np.subtract, *NUMBERS)
_arithmetic(ops.Mul, np.multiply, *NUMBERS, *FURTHER)
_arithmetic(ops.Div, np.true_divide, TensorType.FLOAT32)


@reference(ops.Div, *INTEGERS)
def integer_div(op: ops.Div, x: Array, y: Array) -> Array:
    """Divide toward zero. Raises LucioleError when a divisor is 0."""
    refuse_zeros(y)
    with np.errstate(over="ignore"):
        return activate(truncated_quotient(x, y), op.activation)


@reference(ops.Maximum, *NUMBERS, TensorType.FLOAT16, TensorType.UINT8, *SMALL)
def maximum(op: ops.Maximum, x: Array, y: Array) -> Array:
    """Compute ``x > y ? x : y`` to the letter: y where one of them is NaN, and for zeros of either
    sign.
    """
    return np.where(x > y, x, y)


@reference(ops.Minimum, *NUMBERS, TensorType.FLOAT16, TensorType.UINT8, *SMALL)
def minimum(op: ops.Minimum, x: Array, y: Array) -> Array:
    """Compute ``x < y ? x : y`` to the letter: y where one of them is NaN, and for zeros of either
    sign.
    """
    return np.where(x < y, x, y)


@reference(ops.Pow, *NUMBERS)
def pow_(op: ops.Pow, x: Array, y: Array) -> Array:
    """Raise x to the power of y. Results that 32 bit integers cannot hold are the lowest one, as in
    LiteRT, but wrap where a single exponent serves a tensor of another shape: LiteRT multiplies
    then. Integers of 64 bits wrap.

    Floats are never multiplied so; LiteRT does it with a single exponent within 1e-5 of a whole
    number. Raises LucioleError for a negative exponent of integers.
    """
    negative = 0 if y.dtype.kind == "f" else np.count_nonzero(y < 0)
    if negative:
        raise LucioleError(f"{negative} of {y.size} exponents are negative, integers need others")
    multiplies = y.size == 1 and x.shape != y.shape
    if x.dtype == np.int32 and not multiplies:
        real = np.float_power(x, y)
        return np.where(np.abs(real) < 2.0**31, real, -(2.0**31)).astype(np.int32)
    return np.power(x, y)


@reference(ops.FloorDiv, TensorType.FLOAT32, *SMALL, *INTEGERS)
def floor_div(op: ops.FloorDiv, x: Array, y: Array) -> Array:
    """Divide and round down, also where y is 0, infinite or NaN (LiteRT refuses it). Raises
    LucioleError for integers there.
    """
    if x.dtype.kind == "f":  # in double precision, as in LiteRT: 1 / 0.1 is below 10
        return np.asarray(np.floor(np.divide(x, y, dtype=np.float64)), x.dtype)
    refuse_zeros(y)
    return np.floor_divide(x, y)


@reference(ops.FloorMod, TensorType.FLOAT32, *SMALL, *INTEGERS)
def floor_mod(op: ops.FloorMod, x: Array, y: Array) -> Array:
    """Compute the remainder with the sign of y, NaN where y is 0. Raises LucioleError for integers
    there.
    """
    if x.dtype.kind != "f":
        refuse_zeros(y)
    left = np.fmod(x, y)
    return np.where((left != 0) & ((y < 0) != (left < 0)), left + y, left)


@reference(ops.SquaredDifference, *NUMBERS)
def squared_difference(op: ops.SquaredDifference, x: Array, y: Array) -> Array:
    """Square the differences; integers wrap."""
    return np.asarray(np.square(x - y), x.dtype)


@reference(ops.Atan2, TensorType.FLOAT32, TensorType.FLOAT16, TensorType.FLOAT64)
def atan2(op: ops.Atan2, x: Array, y: Array) -> Array:
    """Compute the arc tangent of x / y in all four quadrants."""
    return np.arctan2(x, y)


@reference(ops.BitwiseXor, *BITS)
def bitwise_xor(op: ops.BitwiseXor, x: Array, y: Array) -> Array:
    """Combine integers bit by bit."""
    return np.bitwise_xor(x, y)


@reference(ops.RightShift, *BITS)
def right_shift(op: ops.RightShift, x: Array, y: Array) -> Array:
    """Shift by y bits: by 0 where y is negative, by all bits but one where y is too large."""
    bits = np.clip(y, 0, 8 * x.itemsize - 1).astype(x.dtype)
    return np.asarray(np.right_shift(x, bits))


def _whole(cls: type[ops.Arithmetic], function: Integers) -> None:
    @native(cls, *INTEGERS)
    def build(op: ops.Arithmetic, context: Context) -> NativeStep | None:
        if op.activation != ActivationFunctionType.NONE:
            return None
        return plain_integers.step(function, context)


def _divided(cls: type[ops.Binary], function: Integers) -> None:
    @native(cls, *SMALL, *INTEGERS)
    def build(op: ops.Binary, context: Context) -> NativeStep | Declined:
        divisors = op.y.data
        if divisors is None or np.isin(divisors, (0, -1)).any():
            return Declined("divisors are computed, or 0 or -1 is among them")
        return plain_integers.step(function, context)


_divided(ops.FloorDiv, Integers.QUOTIENT)
_divided(ops.FloorMod, Integers.REMAINDER)
_whole(ops.Add, Integers.SUM)
_whole(ops.Sub, Integers.DIFFERENCE)
_whole(ops.Mul, Integers.PRODUCT)
binary.register_arithmetic(ops.Add, Binary.ADD)
binary.register_arithmetic(ops.Sub, Binary.SUB)
binary.register_arithmetic(ops.Mul, Binary.MUL)
binary.register_arithmetic(ops.Div, Binary.DIV)
binary.register(ops.Maximum, Binary.MAXIMUM)
binary.register(ops.Minimum, Binary.MINIMUM)
plain_integers.register(ops.Maximum, Integers.LARGER)
plain_integers.register(ops.Minimum, Integers.SMALLER)
binary.define(ops.SquaredDifference, lambda x, y: (x - y) * (x - y))


def _in_c(cls: type[ops.Binary], function: str, *types: TensorType) -> None:
    @portable(cls, *types)
    def calls(op: ops.Binary, context: PortableContext) -> list[CCall]:
        del context
        if isinstance(op, ops.Arithmetic) and op.activation != ActivationFunctionType.NONE:
            raise UnsupportedError(f"fused activation {op.activation.name} has no C form here")
        return plain.pair_calls(function, op.x, op.y, op.output)


_in_c(ops.Add, "plus", *INTEGERS)
_in_c(ops.Sub, "minus", *INTEGERS)
_in_c(ops.Mul, "times", *INTEGERS)
_in_c(ops.SquaredDifference, "squared_difference", *INTEGERS)
_in_c(ops.Maximum, "larger", *INTEGERS, TensorType.UINT8, *SMALL)
_in_c(ops.Minimum, "smaller", *INTEGERS, TensorType.UINT8, *SMALL)
