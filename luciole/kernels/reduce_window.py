"""REDUCE_WINDOW kernels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from luciole.ir import Array, TensorType, UnsupportedError
from luciole.ir.ops.reduce_window import ReduceWindow, reduced
from luciole.ir.rules import integers
from luciole.kernels.core.limits import affordable
from luciole.kernels.core.registry import reference
from luciole.schema.enums import ReduceWindowFunction

FUNCTIONS = {
    ReduceWindowFunction.ADD: np.add,
    ReduceWindowFunction.MUL: np.multiply,
    ReduceWindowFunction.MINIMUM: np.minimum,
    ReduceWindowFunction.MAXIMUM: np.maximum,
    ReduceWindowFunction.ALL: np.logical_and,
    ReduceWindowFunction.ANY: np.logical_or,
}
LOGICAL = (ReduceWindowFunction.ALL, ReduceWindowFunction.ANY)

TYPES = (
    *(TensorType.BOOL, TensorType.FLOAT32, TensorType.INT8, TensorType.INT16),
    *(TensorType.INT32, TensorType.INT64, TensorType.UINT8),
)


@reference(ReduceWindow, *TYPES)
def reduce_window(
    op: ReduceWindow, x: Array, init: Array, sizes: Array, strides: Array, dilations: Array
) -> Array:
    """Reduce all windows; integers wrap around."""
    function = FUNCTIONS.get(op.reduce_function)
    if function is None or (op.reduce_function in LOGICAL) != (x.dtype == np.bool_):
        raise UnsupportedError(f"no {op.reduce_function.name} of {op.input.dtype.name}")
    names = ("window_dimensions", "window_strides", "window_dilations")
    arrays = zip((sizes, strides, dilations), names, strict=True)
    windows = [integers(array, name, x.ndim) for array, name in arrays]
    affordable(op, reduced(x.shape, *windows))
    return reduced_windows(function, x, init, *windows)


def reduced_windows(
    function: np.ufunc,
    x: Array,
    init: Array,
    sizes: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> Array:
    """Reduce all windows of an array with a first value, one axis after the other."""
    for axis, (size, stride, dilation) in enumerate(zip(sizes, strides, dilations, strict=True)):
        view = sliding_window_view(x, (size - 1) * dilation + 1, axis=axis)[..., ::dilation]
        steps = (*[slice(None)] * axis, slice(None, None, stride))
        x = function.reduce(view[steps], axis=-1, dtype=x.dtype)
    return np.asarray(function(init.reshape(()), x), x.dtype)
