"""Kernels of the comparisons."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops import comparisons as ops
from luciole.kernels.core.registry import reference
from luciole.kernels.elementwise_binary import NUMBERS

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
_register(ops.Equal, np.equal, *NUMBERS, TensorType.FLOAT16, TensorType.BOOL)
_register(ops.NotEqual, np.not_equal, *NUMBERS, TensorType.FLOAT16, TensorType.BOOL)
