"""CAST kernels."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from luciole.ir import Array, TensorType, UnsupportedError
from luciole.ir.dtypes import NUMPY
from luciole.ir.ops.cast import Cast
from luciole.kernels.core.contract import Context, NativeStep
from luciole.kernels.core.registry import native, reference
from luciole.kernels.elements import conversions
from luciole.kernels.jit.vector.conversions import Kind
from luciole.kernels.portable.calls import CCall, PortableContext, portable
from luciole.kernels.portable.moves import TYPES as MOVED
from luciole.kernels.portable.plain import cast_call

TYPES = (
    TensorType.FLOAT32,
    TensorType.FLOAT16,
    TensorType.FLOAT64,
    TensorType.INT64,
    TensorType.INT32,
    TensorType.INT16,
    TensorType.INT8,
    TensorType.UINT64,
    TensorType.UINT32,
    TensorType.UINT16,
    TensorType.UINT8,
    TensorType.BOOL,
    TensorType.COMPLEX64,
)


@reference(Cast, *TYPES)
def cast(op: Cast, x: Array) -> Array:
    """Convert elements: floats to integers toward zero, saturated; integers wrap; all but 0 is
    true; of complex numbers the real part is left.

    Raises UnsupportedError for a result type that is not in ``TYPES``.
    """
    to = op.output.dtype
    if to not in TYPES:
        have = ", ".join(t.name for t in TYPES)
        raise UnsupportedError(f"no cast to {to.name}; there is {have}")
    kind = NUMPY[to].kind
    real = x.real if x.dtype.kind == "c" and kind != "c" else x
    if real.dtype.kind == "f" and kind in "iu":
        return _saturated(real.astype(np.float64), NUMPY[to])
    with np.errstate(over="ignore"):
        return real.astype(NUMPY[to])


def _saturated(x: Array, dtype: DTypeLike) -> Array:
    """Convert floats to the nearest integers toward zero; what is too large and, as in LiteRT, NaN
    become the largest one.
    """
    limits = np.iinfo(dtype)
    high, low = ~(x < float(limits.max + 1)), x < float(limits.min)
    inside = np.where(high | low, 0, x).astype(dtype)
    inside[high], inside[low] = limits.max, limits.min
    return inside


WHOLE = {**conversions.KINDS, TensorType.INT64: Kind.INT64, TensorType.BOOL: Kind.UINT8}
"""Integers and truth values."""


@native(Cast, TensorType.FLOAT32)
def build_from_floats(op: Cast, context: Context) -> NativeStep | None:
    """Convert floats to integers, and to truth values."""
    x, y, kind = context.first, context.results[0], WHOLE.get(op.output.dtype)
    if op.output.dtype == TensorType.BOOL:
        return conversions.to_integers(Kind.FLOAT32, Kind.UINT8, x, y, are_truths=True)
    return None if kind is None else conversions.toward_zero(kind, x, y)


@native(Cast, *WHOLE)
def build_from_integers(op: Cast, context: Context) -> NativeStep | None:
    """Convert integers and truth values to floats, to others, which wrap, and to truth values."""
    x, y, to = context.first, context.results[0], op.output.dtype
    if to == TensorType.FLOAT32:
        return conversions.to_floats(WHOLE[op.x.dtype], x, y)
    if to not in WHOLE:
        return None
    return conversions.to_integers(WHOLE[op.x.dtype], WHOLE[to], x, y, to == TensorType.BOOL)


@portable(Cast, *MOVED)
def in_c(op: Cast, context: PortableContext) -> list[CCall]:
    """Convert number by number."""
    del context
    return [cast_call(op.x, op.output)]
