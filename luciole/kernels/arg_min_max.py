"""ARG_MAX and ARG_MIN kernels."""

from __future__ import annotations

from functools import cache
from math import prod

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.dtypes import NUMPY
from luciole.ir.ops.arg_min_max import ArgMax, ArgMin, Extremum, without
from luciole.ir.rules import axis, integers
from luciole.kernels import jit
from luciole.kernels.core.contract import Context, NativeStep
from luciole.kernels.core.memory import Memory, reach
from luciole.kernels.core.registry import native, reference
from luciole.kernels.jit.record import Record
from luciole.kernels.jit.vector.conversions import Kind, integers_at, numbers_at
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


KINDS = {
    np.dtype(np.float32): Kind.FLOAT32,
    np.dtype(np.int64): Kind.INT64,
    np.dtype(np.int32): Kind.INT32,
    np.dtype(np.int16): Kind.INT16,
    np.dtype(np.int8): Kind.INT8,
    np.dtype(np.uint8): Kind.UINT8,
    np.dtype(np.bool_): Kind.UINT8,
}


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


class LinesRecord(Record):
    """Lines of ``count`` elements, of which places are found: ``inner`` lines stand side by side,
    in ``outer`` blocks.
    """

    y: int
    x: int
    outer: int
    inner: int
    count: int
    never: float
    """Number that is never chosen, as NaN is not."""


def _build(op: ArgMax | ArgMin, context: Context) -> NativeStep | None:
    x, dimension = context.pair
    y = context.results[0]
    if not op.dimension.is_constant or not x.size or x.dtype not in KINDS:
        return None
    axis = integers(dimension, "dimension", 1)[0] % x.ndim
    outer, inner = prod(x.shape[:axis]), prod(x.shape[axis + 1 :])
    memory, kind = Memory(), KINDS[x.dtype]
    record = LinesRecord(
        y=reach(y, y.itemsize * outer * inner),
        x=reach(x, x.nbytes),
        outer=outer,
        inner=inner,
        count=x.shape[axis],
        never=-np.inf if isinstance(op, ArgMax) else np.inf,
    )
    to = Kind.INT64 if y.dtype == np.int64 else Kind.INT32
    kernel = _places(int(kind), int(to), int(isinstance(op, ArgMax)))
    return memory.step(kernel.address, record)


native(ArgMax, *TYPES)(_build)
native(ArgMin, *TYPES)(_build)


@cache
def _places(kind: int, to: int, largest: int) -> jit.Kernel:
    """Make the kernel of the first largest or smallest numbers of a kind."""

    @jit.kernel
    def places(r: LinesRecord) -> None:
        y, x = integers_at(r.y, to), numbers_at(r.x, kind)
        for block in range(r.outer):
            for line in range(r.inner):
                first = block * r.inner * r.count + line
                place, best = 0, x[first]
                for k in range(1, r.count):
                    number = x[first + k * r.inner]
                    beyond = number > best if largest else number < best
                    is_some = number > r.never if largest else number < r.never
                    if beyond or (best != best and is_some):  # NaN
                        place, best = k, number
                y[block * r.inner + line] = place

    return places
