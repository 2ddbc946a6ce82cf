"""Kernels of the binary element-wise operators."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from luciole.ir import Array, LucioleError, TensorType
from luciole.ir.ops import elementwise_binary as ops
from luciole.kernels import pairs
from luciole.kernels.activation import activate
from luciole.kernels.jit.elementwise import Binary
from luciole.kernels.registry import Context, NativeStep, native, reference

NUMBERS = (TensorType.FLOAT32, TensorType.INT32, TensorType.INT64)
INTEGERS = (TensorType.INT32, TensorType.INT64)

Function = Callable[[Array, Array], Array]


def truncated_quotient(x: Array, y: Array) -> Array:
    """x / y of integers toward zero, as in C; y has no zeros. The lowest integer / -1 wraps."""
    return np.asarray((x - np.fmod(x, y)) // y, x.dtype)


def _arithmetic(cls: type[ops.Arithmetic], function: Function, *types: TensorType) -> None:
    @reference(cls, *types)
    def kernel(op: ops.Arithmetic, x: Array, y: Array) -> Array:
        with np.errstate(all="ignore"):
            return activate(np.asarray(function(x, y), x.dtype), op.activation)


def _native(cls: type[ops.Arithmetic], function: Binary) -> None:
    @native(cls, TensorType.FLOAT32)
    def build(op: ops.Arithmetic, context: Context) -> NativeStep | None:
        x, y = context.operands
        return pairs.step(function, x, y, context.results[0], op.activation)


_arithmetic(ops.Add, np.add, *NUMBERS)
_arithmetic(ops.Sub, np.subtract, *NUMBERS)
_arithmetic(ops.Mul, np.multiply, *NUMBERS)
_arithmetic(ops.Div, np.true_divide, TensorType.FLOAT32)


@reference(ops.Div, *INTEGERS)
def integer_div(op: ops.Div, x: Array, y: Array) -> Array:
    """Rounded toward zero. Raises LucioleError when a divisor is 0."""
    zeros = y.size - np.count_nonzero(y)
    if zeros:
        raise LucioleError(f"{zeros} of {y.size} divisors are 0, integers need others")
    with np.errstate(over="ignore"):
        return activate(truncated_quotient(x, y), op.activation)


@reference(ops.Maximum, *NUMBERS)
def maximum(op: ops.Maximum, x: Array, y: Array) -> Array:
    """``x > y ? x : y`` to the letter: y where one of them is NaN, and for zeros of either sign."""
    return np.where(x > y, x, y)


@reference(ops.Minimum, *NUMBERS)
def minimum(op: ops.Minimum, x: Array, y: Array) -> Array:
    """``x < y ? x : y`` to the letter: y where one of them is NaN, and for zeros of either sign."""
    return np.where(x < y, x, y)


_native(ops.Add, Binary.ADD)
_native(ops.Sub, Binary.SUB)
_native(ops.Mul, Binary.MUL)
_native(ops.Div, Binary.DIV)
pairs.register(ops.Maximum, Binary.MAXIMUM)
pairs.register(ops.Minimum, Binary.MINIMUM)
