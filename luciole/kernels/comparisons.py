"""Kernels of the comparisons."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops import comparisons as ops
from luciole.kernels.core.contract import Context, NativeStep
from luciole.kernels.core.registry import native, reference
from luciole.kernels.elements import mixed
from luciole.kernels.elements.mixed import Test
from luciole.kernels.elementwise_binary import NUMBERS
from luciole.kernels.portable import plain
from luciole.kernels.portable.calls import CCall, PortableContext, portable

# Integers of 8 and 16 bits are in integers.elementwise_binary: quantized numbers compare by their
# scales.


def _register(
    cls: type[ops.Comparison], function: Callable[[Array, Array], Array], *types: TensorType
) -> None:
    @reference(cls, *types)
    def kernel(op: ops.Comparison, x: Array, y: Array) -> Array:
        return np.asarray(function(x, y))


_register(ops.Less, np.less, *NUMBERS, TensorType.FLOAT16)
_register(ops.LessEqual, np.less_equal, *NUMBERS, TensorType.FLOAT16)
_register(ops.Greater, np.greater, *NUMBERS, TensorType.FLOAT16)
_register(ops.GreaterEqual, np.greater_equal, *NUMBERS, TensorType.FLOAT16)
for _cls, _test in ((ops.Equal, np.equal), (ops.NotEqual, np.not_equal)):
    _register(_cls, _test, *NUMBERS, TensorType.FLOAT16, TensorType.BOOL, TensorType.STRING)


def _compile(cls: type[ops.Comparison], test: Test, *types: TensorType, turned: bool) -> None:
    """Compile an operator as a test of x and y, or (``turned``) of y and x."""

    @native(cls, *types)
    def build(op: ops.Comparison, context: Context) -> NativeStep | None:
        x, y = context.operands[::-1] if turned else context.operands
        return mixed.compare(test, x, y, context.results[0])


_compile(ops.Less, Test.LESS, *NUMBERS, turned=False)
_compile(ops.LessEqual, Test.LESS_EQUAL, *NUMBERS, turned=False)
_compile(ops.Greater, Test.LESS, *NUMBERS, turned=True)
_compile(ops.GreaterEqual, Test.LESS_EQUAL, *NUMBERS, turned=True)
_compile(ops.Equal, Test.EQUAL, *NUMBERS, TensorType.BOOL, turned=False)
_compile(ops.NotEqual, Test.NOT_EQUAL, *NUMBERS, TensorType.BOOL, turned=False)


def _in_c(cls: type[ops.Comparison], function: str, *types: TensorType) -> None:
    @portable(cls, *types)
    def calls(op: ops.Comparison, context: PortableContext) -> list[CCall]:
        del context
        return plain.pair_calls(function, op.x, op.y, op.output)


for _comparison in ops.COMPARISONS:
    _in_c(_comparison, _comparison.code.name.lower(), *NUMBERS)
for _cls in (ops.Equal, ops.NotEqual):
    _in_c(_cls, _cls.code.name.lower(), TensorType.BOOL)
