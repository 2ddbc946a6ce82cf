"""Kernels of the reductions. An axis of extent 0 gives what LiteRT gives, see each kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops.reduce import Mean, ReduceMax, Reduction, Sum
from luciole.ir.rules import axes, product
from luciole.kernels.elementwise_binary import truncated_quotient
from luciole.kernels.registry import reference

NUMBERS = (TensorType.FLOAT32, TensorType.INT32, TensorType.INT64)
INTEGERS = (TensorType.INT32, TensorType.INT64)


def _where(op: Reduction, x: Array, indices: Array) -> dict[str, Any]:
    """NumPy's words for the axes."""
    numbers = axes(np.atleast_1d(indices).tolist(), x.ndim, "a reduction axis")
    return {"axis": numbers, "keepdims": op.keep_dims}


def _total(op: Reduction, x: Array, indices: Array) -> tuple[Array, int]:
    """Sums in the widest type, and how many elements there are in each."""
    where = _where(op, x, indices)
    wide = np.float64 if x.dtype.kind == "f" else np.int64
    return np.asarray(np.sum(x, dtype=wide, **where)), product(
        x.shape[i] for i in where["axis"]
    ) or 0


@reference(Sum, *NUMBERS)
def sum_(op: Sum, x: Array, indices: Array) -> Array:
    """0 where there is nothing to add; integers wrap, floats are added in double precision."""
    with np.errstate(all="ignore"):
        return _total(op, x, indices)[0].astype(x.dtype)


@reference(Mean, TensorType.FLOAT32)
def mean(op: Mean, x: Array, indices: Array) -> Array:
    """NaN where there is nothing to average."""
    with np.errstate(all="ignore"):
        total, count = _total(op, x, indices)
        return np.asarray(total / np.float64(count), x.dtype)


@reference(Mean, *INTEGERS)
def integer_mean(op: Mean, x: Array, indices: Array) -> Array:
    """Rounded toward zero; 0 where there is nothing to average. Sums wrap in 64 bits."""
    total, count = _total(op, x, indices)
    return truncated_quotient(total, np.asarray(max(count, 1))).astype(x.dtype)


@reference(ReduceMax, *NUMBERS)
def reduce_max(op: ReduceMax, x: Array, indices: Array) -> Array:
    """NaN is skipped; the lowest value (-infinity for floats) where nothing is left."""
    lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    where = _where(op, x, indices)
    return np.asarray(np.fmax.reduce(x, initial=x.dtype.type(lowest), **where), x.dtype)
