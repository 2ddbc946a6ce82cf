"""Kernels of the pools."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops.activations import LIMITS
from luciole.ir.ops.pool_2d import AveragePool2D, L2Pool2D, MaxPool2D, Pool2D
from luciole.kernels import folds, jit, loops
from luciole.kernels.activation import activate
from luciole.kernels.jit import LANES, Record, elementwise, longs
from luciole.kernels.jit.elementwise import Binary, Unary
from luciole.kernels.layers.spans import Axis
from luciole.kernels.layers.windows import patches
from luciole.kernels.maps import bits
from luciole.kernels.registry import Context, NativeStep, native, reference


@reference(AveragePool2D, TensorType.FLOAT32)
def average_pool_2d(op: AveragePool2D, x: Array) -> Array:
    """The sum over each window, divided by how many of its elements are not padding."""
    inside = windows(op, np.ones((1, *x.shape[1:3], 1), x.dtype)).sum(axis=(4, 5))
    return activate(windows(op, x).sum(axis=(4, 5)) / inside, op.activation)


@reference(MaxPool2D, TensorType.FLOAT32)
def max_pool_2d(op: MaxPool2D, x: Array) -> Array:
    """The largest element; a window always has one that is not padding."""
    return activate(windows(op, x, fill=-np.inf).max(axis=(4, 5)), op.activation)


@reference(L2Pool2D, TensorType.FLOAT32)
def l2_pool_2d(op: L2Pool2D, x: Array) -> Array:
    """The root of the mean square over each window, in double precision."""
    inside = windows(op, np.ones((1, *x.shape[1:3], 1))).sum(axis=(4, 5))
    squares = windows(op, x.astype(np.float64) ** 2).sum(axis=(4, 5))
    return activate(np.sqrt(squares / inside).astype(x.dtype), op.activation)


def windows(op: Pool2D, x: Array, fill: float = 0) -> Array:
    """Every window of an operator, see ``patches``; ``fill`` stands in the padding."""
    kernel, stride = (op.filter_height, op.filter_width), (op.stride_h, op.stride_w)
    return patches(x, kernel, stride, op.padding, fill=fill)


@native(AveragePool2D, TensorType.FLOAT32)
def build_average(op: AveragePool2D, context: Context) -> NativeStep | None:
    """Sums over the taps that lie inside the image, then quotients."""
    return _step(op, context, Binary.ADD, 0, True)


@native(MaxPool2D, TensorType.FLOAT32)
def build_max(op: MaxPool2D, context: Context) -> NativeStep | None:
    """The largest of the taps that lie inside the image; NaN where one of them is."""
    return _step(op, context, Binary.LARGER_OR_NAN, -np.inf, False)


def _step(
    op: Pool2D, context: Context, function: Binary, start: float, is_mean: bool
) -> NativeStep | None:
    x, y = context.operands[0], context.results[0]
    assert x is not None
    if op.activation not in LIMITS or not y.size:
        return None
    record, inside = walk(op, x, y)
    record += map(bits, [start, *LIMITS[op.activation], is_mean])
    size = (op.filter_height, op.filter_width)
    small = size if op.filter_height * op.filter_width <= MOST_UNROLLED else (0, 0)
    work = y.size * op.filter_height * op.filter_width
    return loops.step(_kernel(int(function), *small), record, 2, work, inside)


def walk(op: Pool2D, x: Array, y: Array) -> tuple[list[int], tuple[Array, Array]]:
    """How a kernel goes from window to window, see ``_kernel``, and the tables that tell it."""
    _, height, width, channels = x.shape
    rows = Axis.of(height, op.filter_height, op.stride_h, 1, op.padding)
    columns = Axis.of(width, op.filter_width, op.stride_w, 1, op.padding)
    inside = (np.ascontiguousarray(rows.inside), np.ascontiguousarray(columns.inside))
    pixel = x.itemsize * channels
    steps = (height * width * pixel, width * pixel, pixel)
    tables = [n for axis in inside for n in (len(axis), axis.ctypes.data)]
    lines = y.shape[0] * y.shape[1]
    return [y.ctypes.data, x.ctypes.data, 0, lines, channels, *steps, *tables], inside


MOST_UNROLLED = 16
"""Taps of a window up to which its loops are unrolled, in a kernel for its size."""

CLAMP, SCALE = int(Unary.CLAMP), int(Unary.SCALE)


@cache
def _kernel(function: int, height: int, width: int) -> jit.Kernel:
    """The kernel for windows that mostly are of this size.

    Record: result, operand, lines of the result from and to, channels, bytes of an image, a row and
    a pixel, for rows and columns of the result their number and the inputs inside (first, count),
    then what begins, the limits, whether it is a mean.
    """

    @jit.kernel
    def pool_2d(r: Record) -> None:
        chosen = elementwise.function(function)
        channels, columns, whole = r[4], r[10], r[4] // LANES * LANES
        for line in range(r[2], r[3]):
            image, row = line // r[8], longs(r[9] + 16 * (line % r[8]))
            for column in range(columns):
                across = longs(r[11] + 16 * column)
                shape = (row[1], across[1], r[6], r[7])
                is_full = row[1] == height and across[1] == width
                x = r[1] + image * r[5] + row[0] * r[6] + across[0] * r[7]
                y = r[0] + 4 * channels * (line * columns + column)
                for first in range(0, whole, LANES):
                    if is_full:
                        full = (height, width, r[6], r[7])
                        _window(chosen, r, y + 4 * first, x + 4 * first, LANES, full)
                    else:
                        _window(chosen, r, y + 4 * first, x + 4 * first, LANES, shape)
                if whole < channels:
                    _window(chosen, r, y + 4 * whole, x + 4 * whole, channels - whole, shape)

    return pool_2d


@jit.merged
def _window(chosen: Any, r: Record, y: int, x: int, lanes: int, shape: Any) -> None:
    """A function over the taps of a window, for up to 16 channels; ``shape`` are its rows and
    columns and the bytes from one to the next.
    """
    rows, columns, down, across = shape
    start, low, high = (
        elementwise.number(r[12]),
        elementwise.number(r[13]),
        elementwise.number(r[14]),
    )
    found = elementwise.spread(start)
    for _ in range(rows):
        tap = x
        for _ in range(columns):
            found = elementwise.combined(chosen, folds.load(tap, lanes, start), found)
            tap += across
        x += down
    if r[15]:
        share = np.float32(1) / np.float32(rows * columns)
        found = elementwise.mapped(elementwise.function(SCALE), found, share, share)
    folds.store(elementwise.mapped(elementwise.function(CLAMP), found, low, high), y, lanes)
