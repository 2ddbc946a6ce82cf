"""C forms of operators that only move elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from luciole.ir import TensorType, Value
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
    """Let all bytes of a tensor be the same."""
    size = element_count(y.dims) * np.dtype(NUMPY[y.dtype]).itemsize
    return CCall("luc_fill", {"bytes": size, "with": byte % 256}, (), (y,))
