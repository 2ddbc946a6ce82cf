"""STABLEHLO_REDUCE_WINDOW kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, TensorType, UnsupportedError
from luciole.ir.ops.stablehlo_reduce_window import StablehloReduceWindow, spread_out, windows_of
from luciole.ir.rules import settled
from luciole.kernels.arrays.bodies import function_of
from luciole.kernels.core.limits import afford, affordable
from luciole.kernels.core.registry import reference
from luciole.kernels.reduce_window import TYPES, reduced_windows
from luciole.kernels.stablehlo_pad import spread_into

LOGICAL = (np.logical_and, np.logical_or, np.bitwise_and)


@reference(StablehloReduceWindow, *TYPES, TensorType.FLOAT64)
def stablehlo_reduce_window(op: StablehloReduceWindow, x: Array, init: Array) -> Array:
    """Spread the input among first values, and reduce all windows."""
    function = function_of(op.body)
    if function is None or (function in LOGICAL) != (x.dtype == np.bool_):
        raise UnsupportedError(f"its graph computes no number from two of {x.dtype}")
    extents = settled(spread_out(op, x.shape))
    afford(op.input.dtype, extents)
    shape = affordable(op, windows_of(op, extents))
    if 0 in shape:
        return np.empty(shape, x.dtype)
    low, interior = op.padding[::2], [n - 1 for n in op.base_dilations]
    spread = spread_into(np.full(extents, init.reshape(()), x.dtype), x, low, interior)
    sizes, strides, dilations = op.window_dimensions, op.window_strides, op.window_dilations
    return reduced_windows(function, spread, init, sizes, strides, dilations)
