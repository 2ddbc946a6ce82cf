"""Kernels that give images another height and width, as TFLite's reference computes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array, LucioleError, TensorType
from luciole.ir.dtypes import tensor_type
from luciole.ir.ops.resize import ResizeBilinear, ResizeNearestNeighbor, resized
from luciole.ir.rules import integers
from luciole.kernels.core.contract import Context, NativeStep
from luciole.kernels.core.limits import affordable, room
from luciole.kernels.core.registry import ANY, native, reference
from luciole.kernels.elements import mixing, picking
from luciole.kernels.elements.mixing import FRACTION_BITS
from luciole.kernels.portable.calls import CCall, Field, PortableContext, portable
from luciole.kernels.portable.moves import TYPES as MOVED
from luciole.kernels.portable.moves import pick

Resize = ResizeBilinear | ResizeNearestNeighbor

NUMBERS = {
    TensorType.FLOAT32: mixing.Number.FLOAT32,
    TensorType.UINT8: mixing.Number.UINT8,
    TensorType.INT8: mixing.Number.INT8,
    TensorType.INT16: mixing.Number.INT16,
}
"""Numbers that compiled code mixes, by element types."""

PART = 1 << 18
"""Elements of a result that are computed together, where rows are not longer."""

PLACE_BYTES = 48
"""Bytes that are computed for a row or a column of the result."""


class Sources(NamedTuple):
    """For each element of an axis of the result its neighbours, and how far behind the lower one
    it lies.
    """

    lower: NDArray[np.intp]
    upper: NDArray[np.intp]
    part: Array

    def of(self, elements: slice) -> Sources:
        """Select the sources of some of the elements."""
        return Sources(*(array[elements] for array in self))


@reference(ResizeNearestNeighbor, *ANY)
def resize_nearest_neighbor(op: ResizeNearestNeighbor, x: Array, size: Array) -> Array:
    """Select rows, then columns."""
    height, width = _wanted(op, x, size)
    rows, columns = (
        _nearest(op, n, to) for n, to in zip(x.shape[1:3], (height, width), strict=True)
    )
    return x[:, rows[:, None], columns]


@native(ResizeNearestNeighbor, *ANY)
def build_nearest(op: ResizeNearestNeighbor, context: Context) -> NativeStep | None:
    """Copy pixels, where the size is known before."""
    x, size = context.operands
    if x is None or size is None or not op.size.is_constant:
        return None
    _wanted(op, x, size)
    (y,) = context.results
    rows, columns = (_nearest(op, x.shape[axis], y.shape[axis]) for axis in (1, 2))
    return picking.step(x, y, rows, columns)


def _wanted(op: Resize, x: Array, size: Array) -> tuple[int, int]:
    """Return the result's height and width."""
    for fault in op.verify():
        raise LucioleError(fault)
    _, height, width, _ = affordable(op, resized(x.shape, integers(size, "size", 2)))
    room(PLACE_BYTES * (height + width), "the places of rows and columns")
    return height, width


def _scale(op: Resize, inputs: int, outputs: int) -> np.float32:
    """Return how far elements of the result are apart, in elements of the input; single
    precision.
    """
    if op.align_corners and outputs > 1:
        return np.float32(inputs - 1) / np.float32(outputs - 1)
    return np.float32(inputs) / np.float32(outputs)


def _nearest(op: Resize, inputs: int, outputs: int) -> NDArray[np.intp]:
    offset = np.float32(0.5 if op.half_pixel_centers else 0)
    places = (np.arange(outputs, dtype=np.float32) + offset) * _scale(op, inputs, outputs)
    half = 0.5 if op.align_corners else 0.0
    nearest = np.floor(places.astype(np.float64) + half).astype(np.intp)
    return np.clip(nearest, 0, inputs - 1)


@reference(ResizeBilinear, TensorType.FLOAT32, TensorType.UINT8)
def resize_bilinear(op: ResizeBilinear, x: Array, size: Array) -> Array:
    """Interpolate in single precision; halves are rounded up."""

    def stored(mixed: Array) -> Array:
        return mixed if x.dtype == mixed.dtype else np.asarray(mixed + np.float32(0.5))

    return _interpolated(op, x, size, _between, 1, stored)


@reference(ResizeBilinear, TensorType.INT8, TensorType.INT16)
def resize_bilinear_integers(op: ResizeBilinear, x: Array, size: Array) -> Array:
    """Interpolate with places of 10 bits; halves are rounded away from zero."""

    def stored(sums: Array) -> Array:
        rounded = (np.abs(sums) + (1 << 2 * FRACTION_BITS - 1)) >> 2 * FRACTION_BITS
        return np.asarray(np.sign(sums) * rounded)

    return _interpolated(op, x, size, _steps, 1 << FRACTION_BITS, stored)


@native(ResizeBilinear, *NUMBERS)
def build_bilinear(op: ResizeBilinear, context: Context) -> NativeStep | None:
    """Mix pixels by the shares that the reference takes, where the size is known before."""
    x, size = context.operands
    if x is None or size is None or not op.size.is_constant:
        return None
    _wanted(op, x, size)
    (y,) = context.results
    number = NUMBERS[tensor_type(x.dtype)]
    kind: type[mixing.RealPlace | mixing.WholePlace]
    places, kind, one = _between, mixing.RealPlace, 1
    if number in (mixing.Number.INT8, mixing.Number.INT16):
        places, kind, one = _steps, mixing.WholePlace, 1 << FRACTION_BITS
    rows, columns = (
        [
            kind(lower=a * step, upper=b * step, near=one - part, far=part)
            for a, b, part in zip(*places(op, x.shape[axis], y.shape[axis]), strict=True)
        ]
        for axis, step in ((1, x.strides[1]), (2, x.strides[2]))
    )
    return mixing.step(number, x, y, rows, columns)


def _interpolated(
    op: Resize,
    x: Array,
    size: Array,
    places: Callable[[Resize, int, int], Sources],
    one: int,
    stored: Callable[[Array], Array],
) -> Array:
    """Interpolate neighbours by their shares of ``one``, a few rows of the result at a time."""
    height, width = _wanted(op, x, size)
    rows, columns = places(op, x.shape[1], height), places(op, x.shape[2], width)
    y = np.empty((len(x), height, width, x.shape[3]), x.dtype)
    for part in _parts(y):
        y[:, part] = stored(_mixed(x, rows.of(part), columns, one))
    return y


def _parts(y: Array) -> Iterator[slice]:
    """Yield rows of the result that are computed together, so that little memory is enough."""
    step = max(PART * y.shape[1] // max(y.size, 1), 1)
    return (slice(first, first + step) for first in range(0, y.shape[1], step))


def _mixed(x: Array, rows: Sources, columns: Sources, one: int) -> Array:
    """Add the four neighbours of each element, each times its share; in this order, so that sums
    are rounded like TFLite's.
    """
    down, across = rows.part[:, None, None], columns.part[:, None]
    upper, left = one - down, one - across
    y = x[:, rows.lower[:, None], columns.lower] * upper * left
    y = y + x[:, rows.upper[:, None], columns.lower] * down * left
    y = y + x[:, rows.lower[:, None], columns.upper] * upper * across
    return np.asarray(y + x[:, rows.upper[:, None], columns.upper] * down * across)


def _between(op: Resize, inputs: int, outputs: int) -> Sources:
    """Compute places as real numbers, in single precision."""
    half = np.float32(0.5 if op.half_pixel_centers else 0)
    scale = _scale(op, inputs, outputs)
    places = (np.arange(outputs, dtype=np.float32) + half) * scale - half
    lower = np.clip(np.floor(places).astype(np.intp), 0, inputs - 1)
    upper = np.clip(np.ceil(places).astype(np.intp), 0, inputs - 1)
    return Sources(lower, upper, places - lower.astype(np.float32))


def _steps(op: Resize, inputs: int, outputs: int) -> Sources:
    """Compute places as whole numbers of 2^-10."""
    if op.align_corners and outputs > 1:
        inside, count = inputs - 1, outputs - 1
    else:
        inside, count = inputs, outputs
    scale = ((inside << FRACTION_BITS) + count // 2) // count
    places = np.arange(outputs, dtype=np.int64) * scale
    if op.half_pixel_centers:
        places += scale // 2 - (1 << FRACTION_BITS - 1)
    lower = np.clip(places >> FRACTION_BITS, 0, inputs - 1)
    above = (places + (1 << FRACTION_BITS) - 1) >> FRACTION_BITS
    upper = np.clip(above, 0, inputs - 1)
    part = places - (lower << FRACTION_BITS)
    return Sources(lower, upper, np.where(lower == upper, 0, part))  # the same, whatever the part


@portable(ResizeNearestNeighbor, *MOVED)
def nearest_in_c(op: ResizeNearestNeighbor, context: PortableContext) -> list[CCall]:
    """Copy the pixels that tables of rows and columns name."""
    del context
    x, y = op.input, op.results[0]
    rows, columns = (_nearest(op, x.dims[axis], y.dims[axis]) for axis in (1, 2))
    return [pick(x, y, [np.arange(x.dims[0]), rows, columns, np.arange(x.dims[3])])]


_MIXED = {
    TensorType.FLOAT32: "float",
    TensorType.INT8: "int8",
    TensorType.INT16: "int16_long",
}
"""Kinds of functions that mix elements of a type."""


@portable(ResizeBilinear, *_MIXED)
def bilinear_in_c(op: ResizeBilinear, context: PortableContext) -> list[CCall]:
    """Mix pixels by tables of rows and columns, with the shares of the reference."""
    del context
    x, y = op.input, op.results[0]
    is_float = x.dtype == TensorType.FLOAT32
    batches, height, width, channels = x.dims
    fields: dict[str, Field] = {"batches": batches, "rows": y.dims[1], "columns": y.dims[2]}
    fields |= {"height": height, "width": width, "channels": channels}
    for name, axis in (("row", 1), ("column", 2)):
        lower, upper, part = (_between if is_float else _steps)(op, x.dims[axis], y.dims[axis])
        fields |= {f"{name}_lower": lower, f"{name}_upper": upper, f"{name}_part": part}
    return [CCall(f"luc_resize_bilinear_{_MIXED[x.dtype]}", fields, (x,), (y,))]
