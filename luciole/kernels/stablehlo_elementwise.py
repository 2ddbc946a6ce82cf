"""Kernels of StableHLO's operators on two tensors of one shape."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops import stablehlo_elementwise as ops
from luciole.kernels.core.registry import reference

SHIFTED = (TensorType.INT8, TensorType.INT16, TensorType.INT32)
INTEGERS = (
    *(*SHIFTED, TensorType.INT64, TensorType.UINT8, TensorType.UINT16),
    *(TensorType.UINT32, TensorType.UINT64, TensorType.BOOL),
)
NUMBERS = (TensorType.FLOAT16, TensorType.FLOAT32, TensorType.FLOAT64, *INTEGERS)


def _register(
    cls: type[ops.StablehloBinary], function: Callable[[Array, Array], Array], *types: TensorType
) -> None:
    @reference(cls, *types)
    def kernel(op: ops.StablehloBinary, x: Array, y: Array) -> Array:
        return np.asarray(function(x, y))


_register(ops.StablehloAdd, np.add, *NUMBERS)
_register(ops.StablehloMultiply, np.multiply, *NUMBERS)
_register(ops.StablehloMaximum, lambda x, y: np.where(x < y, y, x), *NUMBERS)
_register(ops.StablehloMinimum, lambda x, y: np.where(y < x, y, x), *NUMBERS)
_register(ops.StablehloAnd, np.bitwise_and, *INTEGERS)


@reference(ops.StablehloShiftLeft, *SHIFTED)
def shift_left(op: ops.StablehloShiftLeft, x: Array, y: Array) -> Array:
    """Shift by the places that there are, else to 0."""
    inside = (y >= 0) & (y < 8 * x.itemsize)
    return np.where(inside, np.left_shift(x, np.where(inside, y, 0)), 0).astype(x.dtype)
