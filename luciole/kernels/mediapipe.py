"""Kernels of MediaPipe's pools and transposed convolutions."""

from __future__ import annotations

from functools import cache

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops.mediapipe import (
    Convolution2DTransposeBias,
    MaxPoolingWithArgmax2D,
    MaxUnpooling2D,
    reached,
)
from luciole.ir.rules import padding_before, window
from luciole.ir.value import element_count
from luciole.kernels import jit
from luciole.kernels.core.contract import Built, Context, NativeStep
from luciole.kernels.core.limits import room
from luciole.kernels.core.memory import reach
from luciole.kernels.core.registry import native, reference
from luciole.kernels.elements import strided
from luciole.kernels.jit import Pointer, floats
from luciole.kernels.jit.record import Shared
from luciole.kernels.jit.vector.conversions import Kind, integers_at
from luciole.kernels.layers.floats.layer import Arrays, misfit
from luciole.kernels.layers.geometry.windows import patches
from luciole.kernels.portable.calls import CCall, PortableContext, portable
from luciole.kernels.portable.images import cut_off
from luciole.kernels.transpose_conv import phases, spreading, window_sums
from luciole.schema.enums import ActivationFunctionType, Padding

FLOAT32 = TensorType.FLOAT32
NONE = ActivationFunctionType.NONE

INT32 = int(Kind.INT32)


@reference(MaxPoolingWithArgmax2D, FLOAT32)
def max_pooling_with_argmax_2d(op: MaxPoolingWithArgmax2D, x: Array) -> tuple[Array, Array]:
    """Find the largest element of each window and its place, of equal ones the first, column by
    column.
    """
    taps = _windows(op, x)
    largest = taps[..., 0, 0].copy()
    places = np.zeros(largest.shape, np.uint32)
    for place in range(1, op.filter_width * op.filter_height):
        tap = taps[..., place % op.filter_height, place // op.filter_height]
        better = tap > largest
        largest, places = np.where(better, tap, largest), np.where(better, place, places)
    return largest, places.astype(np.uint32).view(np.float32)


def _windows(op: MaxPoolingWithArgmax2D, x: Array) -> Array:
    """View every window of an image whose edges go on: [n, out_h, out_w, c, height, width]."""
    kernel, pads = (op.filter_height, op.filter_width), []
    for size, k in zip(x.shape[1:3], kernel, strict=True):
        before = padding_before(size, k, k, 1, op.padding.kind)
        out = window(size, k, k, 1, op.padding.kind) or 0
        pads.append((before, max(out * k - size - before, 0)))
    extents = [n + sum(pad) for n, pad in zip(x.shape[1:3], pads, strict=True)]
    room(element_count((len(x), *extents, x.shape[3])) * x.itemsize, "a padded image")
    if 0 in x.shape:
        return patches(x, kernel, kernel, Padding.SAME)
    return patches(np.pad(x, ((0, 0), *pads, (0, 0)), "edge"), kernel, kernel, Padding.VALID)


@reference(MaxUnpooling2D, FLOAT32)
def max_unpooling_2d(op: MaxUnpooling2D, x: Array, places: Array) -> Array:
    """Write each element at its place; one outside of the window is nowhere."""
    height, width = op.filter_height, op.filter_width
    numbers = np.ascontiguousarray(places).view(np.uint32)
    n, h, w, c = x.shape
    room(element_count((n, h * height, w * width, c)) * x.itemsize, "the result")
    result = np.zeros((n, h, height, w, width, c), np.float32)
    for place in range(height * width):
        taken = np.where(numbers == place, x, np.float32(0))
        result[:, :, place % height, :, place // height] = taken
    return result.reshape(n, h * height, w * width, c)


class PoolRecord(Shared):
    """Windows in lines of images: addresses, how many lines an image has and windows a line, and
    the extents of inputs, of windows and of the padding in front.
    """

    x: int
    places: int
    y: int
    rows: int
    columns: int
    channels: int
    height: int
    width: int
    down: int
    across: int
    top: int
    left: int


@native(MaxPoolingWithArgmax2D, FLOAT32)
def build_pool(op: MaxPoolingWithArgmax2D, context: Context) -> NativeStep | None:
    """Compare all channels of a window tap by tap."""
    x, (y, places) = context.operands[0], context.results
    return None if x is None else _pool_step(op, _kernel(1), x, places, y, y.shape)


@native(MaxUnpooling2D, FLOAT32)
def build_unpool(op: MaxUnpooling2D, context: Context) -> NativeStep | None:
    """Write all channels of a window tap by tap."""
    (x, places), (y,) = context.operands, context.results
    if x is None or places is None:
        return None
    return _pool_step(op, _kernel(0), y, places, x, x.shape)


def _pool_step(
    op: MaxPoolingWithArgmax2D | MaxUnpooling2D,
    kernel: jit.Kernel,
    image: Array,
    places: Array,
    windows: Array,
    shape: tuple[int, ...],
) -> NativeStep | None:
    """Make the step of a kernel from or to an image, with as many windows as ``shape`` says."""
    n, rows, columns, channels = shape
    _, height, width, _ = image.shape
    if not windows.size or not image.size:
        return None
    sizes = (op.filter_height, op.filter_width)
    top, left = (
        padding_before(extent, k, k, 1, op.padding.kind)
        for extent, k in zip((height, width), sizes, strict=True)
    )
    size = 4 * n * rows * columns * channels
    record = PoolRecord(
        begin=0,
        end=n * rows,
        x=reach(image, 4 * n * height * width * channels),
        places=reach(places, size),
        y=reach(windows, size),
        rows=rows,
        columns=columns,
        channels=channels,
        height=height,
        width=width,
        down=op.filter_height,
        across=op.filter_width,
        top=top,
        left=left,
    )
    return strided.step(kernel, record, image.size)


@jit.inlined
def _inside(place: int, size: int) -> int:
    """Return the nearest row or column of an image."""
    return min(max(place, 0), size - 1)


@jit.inlined
def _compare(tap: Pointer, place: int, y: Pointer, places: Pointer, channels: int) -> None:
    """Take numbers that are larger than before, and their place."""
    for c in range(channels):
        better = tap[c] > y[c]
        y[c] = tap[c] if better else y[c]
        places[c] = np.int32(place) if better else places[c]


@jit.inlined
def _pool_window(r: PoolRecord, image: int, row: int, column: int, offset: int) -> None:
    """Compare the taps of a window, column by column."""
    channels, place = r.channels, 0
    y, places = floats(r.y + offset), integers_at(r.places + offset, INT32)
    for across in range(r.across):
        x = _inside(column + across, r.width)
        for down in range(r.down):
            number = np.int32(place)
            tap = floats(image + 4 * channels * (_inside(row + down, r.height) * r.width + x))
            if place:
                _compare(tap, place, y, places, channels)
            else:
                for c in range(channels):
                    y[c], places[c] = tap[c], number
            place += 1


@jit.inlined
def _unpool_window(r: PoolRecord, image: int, row: int, column: int, offset: int) -> None:
    """Write the taps of a window."""
    channels, place = r.channels, 0
    y, places = floats(r.y + offset), integers_at(r.places + offset, INT32)
    for across in range(r.across):
        for down in range(r.down):
            number = np.int32(place)
            tap = floats(image + 4 * channels * ((row + down) * r.width + column + across))
            for c in range(channels):
                tap[c] = y[c] if places[c] == number else np.float32(0)
            place += 1


@cache
def _kernel(forward: int) -> jit.Kernel:
    """Make the kernel of pools, or of pools backwards."""

    @jit.kernel
    def pool(r: PoolRecord) -> None:
        size = 4 * r.channels
        for line in range(r.begin, r.end):
            image = r.x + size * (line // r.rows * r.height * r.width)
            row, offset = line % r.rows * r.down - r.top, size * line * r.columns
            for column in range(-r.left, r.columns * r.across - r.left, r.across):
                if forward:
                    _pool_window(r, image, row, column, offset)
                else:
                    _unpool_window(r, image, row, column, offset)
                offset += size

    return pool


@reference(Convolution2DTransposeBias, FLOAT32)
def convolution_2d_transpose_bias(
    op: Convolution2DTransposeBias, x: Array, filter: Array, bias: Array
) -> Array:
    """Sum all windows that reach a place, in float32."""
    stride, kernel = (op.stride_height, op.stride_width), filter.shape[1:3]
    extents = [
        reached(size, k, s, op.padding) or 0
        for size, k, s in zip(x.shape[1:3], kernel, stride, strict=True)
    ]
    sizes = (len(x), *extents, len(filter))
    return window_sums(x, filter, sizes, stride, op.padding.kind) + bias.reshape(-1)


@native(Convolution2DTransposeBias, FLOAT32)
def build(op: Convolution2DTransposeBias, context: Context) -> Built:
    """Run phases as convolutions, see ``transpose_conv.phases``."""
    x, filter, bias = context.operands
    (y,) = context.results
    if x is None or filter is None:
        return None
    if declined := misfit(NONE, x, y, op.filter, op.bias):
        return declined
    arrays = Arrays(x, filter, bias, y)
    return phases(arrays, (op.stride_height, op.stride_width), op.padding.kind, NONE)


@portable(Convolution2DTransposeBias, FLOAT32)
def in_c(op: Convolution2DTransposeBias, context: PortableContext) -> list[CCall]:
    """Call the transposed convolution of floats."""
    stride, weights = (op.stride_height, op.stride_width), context.constant(op.filter)
    windows = spreading(op.input, op.filter, op.results[0], stride, op.padding.kind)
    layer = cut_off(NONE) | {"weights": weights, "bias": context.constant(op.bias)}
    return [CCall("luc_transpose_conv_float", windows | layer, (op.input,), op.results)]
