"""Kernels of the pools."""

from __future__ import annotations

from functools import cache

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops.activations import LIMITS
from luciole.ir.ops.pool_2d import AveragePool2D, L2Pool2D, MaxPool2D, Pool2D
from luciole.kernels import jit
from luciole.kernels.arrays.fused_activation import activate
from luciole.kernels.core.contract import Context, NativeStep
from luciole.kernels.core.memory import Memory, reach, turns
from luciole.kernels.core.registry import native, reference
from luciole.kernels.elements import reduce, strided
from luciole.kernels.formulas.elementwise import Binary, Unary
from luciole.kernels.jit import LANES
from luciole.kernels.jit.record import Shared, reader
from luciole.kernels.jit.vector import elementwise
from luciole.kernels.jit.vector.elementwise import Chosen
from luciole.kernels.layers.geometry.spans import Axis, Inside
from luciole.kernels.layers.geometry.windows import patches
from luciole.kernels.portable.calls import CCall, Field, PortableContext, portable
from luciole.kernels.portable.images import cut_off, windows_of

LOWEST = float(np.finfo(np.float32).min)
"""Start of a maximum, as in LiteRT."""


@reference(AveragePool2D, TensorType.FLOAT32)
def average_pool_2d(op: AveragePool2D, x: Array) -> Array:
    """Divide the sum over each window by how many of its elements are not padding."""
    inside = windows(op, np.ones((1, *x.shape[1:3], 1), x.dtype)).sum(axis=(4, 5))
    return activate(windows(op, x).sum(axis=(4, 5)) / inside, op.activation)


@reference(MaxPool2D, TensorType.FLOAT32)
def max_pool_2d(op: MaxPool2D, x: Array) -> Array:
    """Find the largest element of each window, ``LOWEST`` where none is larger; NaN is skipped."""
    taps = windows(op, x, fill=LOWEST)
    return activate(np.fmax.reduce(taps, axis=(4, 5), initial=np.float32(LOWEST)), op.activation)


@reference(L2Pool2D, TensorType.FLOAT32)
def l2_pool_2d(op: L2Pool2D, x: Array) -> Array:
    """Compute the root of the mean square over each window, in double precision."""
    inside = windows(op, np.ones((1, *x.shape[1:3], 1))).sum(axis=(4, 5))
    squares = windows(op, x.astype(np.float64) ** 2).sum(axis=(4, 5))
    return activate(np.sqrt(squares / inside).astype(x.dtype), op.activation)


def windows(op: Pool2D, x: Array, fill: float = 0) -> Array:
    """View every window of an operator, see ``patches``; ``fill`` stands in the padding."""
    kernel, stride = (op.filter_height, op.filter_width), (op.stride_h, op.stride_w)
    return patches(x, kernel, stride, op.padding, fill=fill)


@native(AveragePool2D, TensorType.FLOAT32)
def build_average(op: AveragePool2D, context: Context) -> NativeStep | None:
    """Sum the taps that lie inside the image, then divide."""
    return _step(op, context, Binary.ADD, 0, True)


@native(MaxPool2D, TensorType.FLOAT32)
def build_max(op: MaxPool2D, context: Context) -> NativeStep | None:
    """Find the largest of the taps that lie inside the image; NaN is skipped."""
    return _step(op, context, Binary.MAXIMUM, LOWEST, False)


def _step(
    op: Pool2D, context: Context, function: Binary, start: float, is_mean: bool
) -> NativeStep | None:
    x, y = context.first, context.results[0]
    if op.activation not in LIMITS or not y.size:
        return None
    memory = Memory()
    low, high = LIMITS[op.activation]
    fields = walk(op, x, y, memory).fields()
    record = PoolRecord(**fields, start=start, low=low, high=high, is_mean=int(is_mean))
    size = (op.filter_height, op.filter_width)
    small = size if op.filter_height * op.filter_width <= MOST_UNROLLED else (0, 0)
    work = y.size * op.filter_height * op.filter_width
    return strided.step(_kernel(int(function), *small), record, work, memory)


class Windows(Shared):
    """A walk from window to window, by lines of the result."""

    y: int
    x: int
    channels: int
    image: int
    """Bytes of an image, of a row and of a pixel."""
    row: int
    pixel: int
    rows: int
    """How many the result has, and the address of an ``Inside`` for each."""
    row_taps: int
    columns: int
    column_taps: int


class PoolRecord(Windows):
    """The start of a pool, its limits, and whether it is a mean."""

    start: float
    low: float
    high: float
    is_mean: int


inside_at = reader(Inside)


def walk(op: Pool2D, x: Array, y: Array, memory: Memory) -> Windows:
    """Plan how a kernel goes from window to window."""
    images, height, width, channels = x.shape
    rows = Axis.of(height, op.filter_height, op.stride_h, 1, op.padding)
    columns = Axis.of(width, op.filter_width, op.stride_w, 1, op.padding)
    pixel, lines = x.itemsize * channels, images * rows.outputs
    steps = (height * width * pixel, width * pixel, pixel)
    extents = (images, rows.met.stop, columns.met.stop)
    return Windows(
        begin=0,
        end=lines,
        y=reach(y, lines * columns.outputs * pixel),
        x=reach(x, pixel, *(turns(n, step) for n, step in zip(extents, steps, strict=True))),
        channels=channels,
        image=steps[0],
        row=steps[1],
        pixel=pixel,
        rows=rows.outputs,
        row_taps=memory.keep(rows.inside, rows.outputs, 2),
        columns=columns.outputs,
        column_taps=memory.keep(columns.inside, columns.outputs, 2),
    )


@jit.inlined
def met(r: Windows, line: int) -> tuple[int, int]:
    """Count the rows that the windows of a line meet, and find the first one."""
    down = inside_at(r.row_taps, line % r.rows)
    return down.count, r.x + line // r.rows * r.image + down.first * r.row


MOST_UNROLLED = 16
"""Taps of a window up to which its loops are unrolled, in a kernel for its size."""

CLAMP, SCALE = int(Unary.CLAMP), int(Unary.SCALE)


@cache
def _kernel(function: int, height: int, width: int) -> jit.Kernel:
    """Make the kernel for windows that mostly are of this size."""

    @jit.kernel
    def pool_2d(r: PoolRecord) -> None:
        chosen = elementwise.function(function)
        channels, columns, whole = r.channels, r.columns, r.channels // LANES * LANES
        for line in range(r.begin, r.end):
            taps, source = met(r, line)
            for column in range(columns):
                across = inside_at(r.column_taps, column)
                shape = (taps, across.count)
                is_full = taps == height and across.count == width
                x = source + across.first * r.pixel
                y = r.y + 4 * channels * (line * columns + column)
                for first in range(0, whole, LANES):
                    if is_full:
                        _window(chosen, r, y + 4 * first, x + 4 * first, LANES, (height, width))
                    else:
                        _window(chosen, r, y + 4 * first, x + 4 * first, LANES, shape)
                if whole < channels:
                    _window(chosen, r, y + 4 * whole, x + 4 * whole, channels - whole, shape)

    return pool_2d


@jit.inlined
def _window(
    chosen: Chosen, r: PoolRecord, y: int, x: int, lanes: int, shape: tuple[int, int]
) -> None:
    """Apply a function to the taps of a window [rows, columns], for up to 16 channels."""
    rows, columns = shape
    start, low, high = r.start, r.low, r.high
    results = elementwise.spread(start)
    for _ in range(rows):
        tap = x
        for _ in range(columns):
            results = elementwise.combined(chosen, reduce.load(tap, lanes, start), results)
            tap += r.pixel
        x += r.row
    if r.is_mean:
        share = np.float32(1) / np.float32(rows * columns)
        results = elementwise.mapped(elementwise.function(SCALE), results, share, share)
    reduce.store(elementwise.mapped(elementwise.function(CLAMP), results, low, high), y, lanes)


def pool_fields(op: Pool2D) -> dict[str, Field]:
    """Write a pool's extents for C."""
    kernel, stride = (op.filter_height, op.filter_width), (op.stride_h, op.stride_w)
    return windows_of(op.value, op.results[0], kernel, stride, op.padding)


@portable(AveragePool2D, TensorType.FLOAT32)
def average_in_c(op: AveragePool2D, context: PortableContext) -> list[CCall]:
    """Call the pool of floats."""
    del context
    fields = pool_fields(op) | cut_off(op.activation)
    return [CCall("luc_average_pool_2d_float", fields, (op.value,), op.results)]


@portable(MaxPool2D, TensorType.FLOAT32)
def max_in_c(op: MaxPool2D, context: PortableContext) -> list[CCall]:
    """Call the pool of floats."""
    del context
    fields = pool_fields(op) | cut_off(op.activation)
    return [CCall("luc_max_pool_2d_float", fields, (op.value,), op.results)]
