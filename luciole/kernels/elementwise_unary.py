"""Kernels of the unary element-wise operators."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops import elementwise_unary as ops
from luciole.kernels.core.registry import reference
from luciole.kernels.elements import lookups, unary
from luciole.kernels.formulas.elementary import nearest
from luciole.kernels.formulas.elementwise import Unary
from luciole.kernels.portable import plain
from luciole.kernels.portable.calls import CCall, PortableContext, portable
from luciole.kernels.portable.moves import fill

NUMBERS = (TensorType.FLOAT32, TensorType.INT32, TensorType.INT64)

FLOATS = (TensorType.FLOAT32, TensorType.FLOAT16)
"""Of functions that LiteRT has in half precision, too."""


def _register(cls: type[ops.Unary], function: Callable[[Array], Array], *types: TensorType) -> None:
    @reference(cls, *types)
    def kernel(op: ops.Unary, x: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(function(x), x.dtype)


_register(ops.Abs, np.abs, *NUMBERS)
_register(ops.Neg, np.negative, *NUMBERS, *FLOATS[1:], TensorType.INT8, TensorType.INT16)
_register(ops.Exp, np.exp, TensorType.FLOAT32)
_register(ops.Log, np.log, TensorType.FLOAT32)
_register(ops.Sqrt, np.sqrt, TensorType.FLOAT32)
_register(ops.Rsqrt, lambda x: 1 / np.sqrt(x), TensorType.FLOAT32)
_register(ops.Square, np.square, *NUMBERS)
_register(ops.Sin, np.sin, *FLOATS)
_register(ops.Cos, np.cos, *FLOATS)
_register(ops.Ceil, np.ceil, TensorType.FLOAT32)
_register(ops.Floor, np.floor, *FLOATS)
_register(ops.Round, np.rint, TensorType.FLOAT32)
_register(ops.Sign, np.sign, *NUMBERS, TensorType.FLOAT64)
_register(ops.ZerosLike, np.zeros_like, *NUMBERS)

unary.register(ops.Abs, Unary.ABS)
unary.register(ops.Neg, Unary.NEG)
unary.register(ops.Exp, Unary.EXP)
unary.register(ops.Log, Unary.LOG)
unary.register(ops.Sqrt, Unary.SQRT)
unary.register(ops.Rsqrt, Unary.RSQRT)
unary.register(ops.Square, Unary.SQUARE)
unary.define(ops.Round, nearest)
lookups.register(ops.Neg, TensorType.INT8, TensorType.INT16)


def _in_c(cls: type[ops.Unary], function: str, *types: TensorType) -> None:
    @portable(cls, *types)
    def calls(op: ops.Unary, context: PortableContext) -> list[CCall]:
        del context
        return [plain.single_call(function, op.x, op.output)]


_in_c(ops.Abs, "size", *NUMBERS[1:])
_in_c(ops.Neg, "negative", *NUMBERS[1:], TensorType.INT16)
_in_c(ops.Square, "square", *NUMBERS[1:])
_in_c(ops.Sign, "sign", *NUMBERS)
_in_c(ops.Ceil, "ceil", TensorType.FLOAT32)
_in_c(ops.Floor, "floor", TensorType.FLOAT32)


@portable(ops.ZerosLike, *NUMBERS)
def zeros_in_c(op: ops.ZerosLike, context: PortableContext) -> list[CCall]:
    """Fill the result with zeros."""
    del context
    return [fill(op.output, 0)]
