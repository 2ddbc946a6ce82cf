"""ARG_MAX and ARG_MIN kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.dtypes import NUMPY
from luciole.ir.ops.arg_min_max import ArgMax, ArgMin, Extremum, without
from luciole.ir.rules import axis, integers
from luciole.kernels.core.registry import reference
from luciole.kernels.portable import plain
from luciole.kernels.portable.calls import CCall, PortableContext, portable

# Quantized numbers are in the order of their integers.
TYPES = (
    TensorType.FLOAT32,
    TensorType.INT64,
    TensorType.INT32,
    TensorType.INT16,
    TensorType.INT8,
    TensorType.UINT8,
    TensorType.BOOL,
)


@reference(ArgMax, *TYPES)
def arg_max(op: ArgMax, x: Array, dimension: Array) -> Array:
    """Find the place of the largest element along an axis; NaN is skipped, 0 where nothing is
    left.
    """
    lines = _lines(x, dimension, -np.inf)
    return np.asarray(np.argmax(lines, axis=-1), NUMPY[op.infer_dtype()])


@reference(ArgMin, *TYPES)
def arg_min(op: ArgMin, x: Array, dimension: Array) -> Array:
    """Find the place of the smallest element along an axis; NaN is skipped, 0 where nothing is
    left.
    """
    lines = _lines(x, dimension, np.inf)
    return np.asarray(np.argmin(lines, axis=-1), NUMPY[op.infer_dtype()])


def _lines(x: Array, dimension: Array, never: float) -> Array:
    """Move the axis to the end and replace NaN by the number that is never chosen."""
    place = integers(dimension, "dimension", 1)
    without(x.shape, place)
    lines = np.moveaxis(x, place[0], -1)
    return np.where(np.isnan(lines), x.dtype.type(never), lines) if x.dtype.kind == "f" else lines


@portable(ArgMax, *TYPES)
@portable(ArgMin, *TYPES)
def in_c(op: Extremum, context: PortableContext) -> list[CCall]:
    """Look along the axis, line by line."""
    x, y = op.input, op.results[0]
    along = axis(integers(context.constant(op.dimension), "dimension", 1)[0], len(x.dims))
    sign = "largest" if isinstance(op, ArgMax) else "smallest"
    name = f"luc_place_of_{sign}_{plain.suffix(x.dtype)}_{plain.suffix(y.dtype)}"
    return [CCall(name, plain.lines(x, [along]), (x,), (y,), layout="luc_lines")]
