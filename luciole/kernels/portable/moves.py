"""C forms of operators that only move elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from luciole.ir import Array, TensorType, UnsupportedError, Value
from luciole.ir.dtypes import NUMPY
from luciole.ir.value import element_count
from luciole.kernels.portable.calls import CCall, Field

TYPES = (TensorType.FLOAT32, TensorType.INT8)


def place(x: Value, y: Value, first: Sequence[int]) -> CCall:
    """Copy a tensor into a part of a larger one, which begins at ``first`` along each axis."""
    size = np.dtype(NUMPY[x.dtype]).itemsize
    steps = [size * element_count(y.dims[axis + 1 :]) for axis in range(len(y.dims))]
    inner = next((a for a in reversed(range(len(x.dims))) if x.dims[a] != y.dims[a]), 0)
    outer = range(inner)[::-1]
    fields: dict[str, Field] = {
        "run": size * element_count(x.dims[inner:]),
        "axes": len(outer),
        "first": sum(at * step for at, step in zip(first, steps, strict=True)),
        "extents": np.array([x.dims[a] for a in outer], np.int64),
        "steps": np.array([steps[a] for a in outer], np.int64),
    }
    return CCall("luc_place", fields, (x,), (y,))


def fill(y: Value, byte: int) -> CCall:
    """Set all bytes of a tensor to the same."""
    size = element_count(y.dims) * np.dtype(NUMPY[y.dtype]).itemsize
    return CCall("luc_fill", {"bytes": size, "with": byte % 256}, (), (y,))


MOST_BYTES = 2**31 - 1
"""Of a tensor: places have 32 bits."""


def take(x: Value, y: Value, view: Callable[[Array], Array]) -> CCall:
    """Copy the elements of a tensor that ``view`` returns: some of them, in any order. Raises
    UnsupportedError for tensors of more than 2^31 - 1 bytes.
    """
    whole = np.zeros(x.dims, NUMPY[x.dtype])
    if max(whole.nbytes, element_count(y.dims) * whole.itemsize) > MOST_BYTES:
        raise UnsupportedError(f"{x.name!r} has more bytes than places of 32 bits reach")
    taken = view(whole)
    run, axes = whole.itemsize, list(zip(taken.shape, taken.strides, strict=True))
    while axes and (axes[-1][1] == run or axes[-1][0] == 1):
        run *= axes.pop()[0]
    axes = [axis for axis in axes[::-1] if axis[0] != 1]
    fields: dict[str, Field] = {
        "run": run,
        "axes": len(axes),
        "first": _first(taken) - _first(whole),
        "extents": np.array([extent for extent, _ in axes], np.int64),
        "steps": np.array([step for _, step in axes], np.int64),
    }
    return CCall("luc_take", fields, (x,), (y,))


def _first(view: Array) -> int:
    """Return where a view's first element lies, which is not its lowest one where axes run
    backwards, to be compared with another view's.
    """
    lowest, _ = _bounds(view)
    turned = zip(view.shape, view.strides, strict=True)
    return int(lowest - sum((extent - 1) * step for extent, step in turned if step < 0))


_bounds: Callable[[Array], tuple[int, int]] = getattr(np.lib, "array_utils", np).byte_bounds
"""Has another place in NumPy 1."""


def spread(x: Value, y: Value) -> tuple[Value, list[CCall]]:
    """Repeat an operand until it has the shape of a result, where that is more elements."""
    if element_count(x.dims) == element_count(y.dims):
        return x, []
    full = Value(f"{x.name}_spread", x.dtype, y.dims)
    return full, [take(x, full, lambda array: np.broadcast_to(array, y.dims))]


def spread_both(x: Value, y: Value, result: Value) -> tuple[tuple[Value, Value], list[CCall]]:
    """Repeat the operands of an operator that works element by element."""
    (left, before), (right, before_right) = spread(x, result), spread(y, result)
    return (left, right), [*before, *before_right]
