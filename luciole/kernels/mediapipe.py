"""Kernels of MediaPipe's pools and transposed convolutions."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, LucioleError, TensorType
from luciole.ir.ops.mediapipe import (
    Convolution2DTransposeBias,
    MaxPoolingWithArgmax2D,
    MaxUnpooling2D,
    reached,
)
from luciole.ir.rules import padding_before, window
from luciole.ir.value import element_count
from luciole.kernels.core.limits import room
from luciole.kernels.core.registry import Context, NativeStep, native, reference
from luciole.kernels.layers.floats.layer import Arrays, fits
from luciole.kernels.layers.geometry.windows import patches
from luciole.kernels.transpose_conv import phases, window_sums
from luciole.schema.enums import ActivationFunctionType, Padding

FLOAT32 = TensorType.FLOAT32
NONE = ActivationFunctionType.NONE


@reference(MaxPoolingWithArgmax2D, FLOAT32)
def max_pooling_with_argmax_2d(op: MaxPoolingWithArgmax2D, x: Array) -> tuple[Array, Array]:
    """Find the largest element of each window and its place, of equal ones the first, column by
    column.
    """
    found = _windows(op, x).swapaxes(-1, -2)
    columns = found.reshape(*found.shape[:4], op.filter_width * op.filter_height)
    places = columns.argmax(-1)
    largest = np.take_along_axis(columns, places[..., None], -1)[..., 0]
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
    """Write each element at its place. Raises LucioleError for a place outside of the window."""
    height, width = op.filter_height, op.filter_width
    numbers = np.ascontiguousarray(places).view(np.uint32)
    most = int(numbers.max(initial=0))
    if most >= height * width:
        raise LucioleError(f"a place is {most}, windows have {height * width} elements")
    n, h, w, c = x.shape
    room(element_count((n, h * height, w * width, c)) * x.itemsize, "the result")
    result = np.zeros((n, h, height, w, width, c), np.float32)
    image, row, column, channel = np.ix_(*map(np.arange, x.shape))
    result[image, row, numbers % height, column, numbers // height, channel] = x
    return result.reshape(n, h * height, w * width, c)


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
def build(op: Convolution2DTransposeBias, context: Context) -> NativeStep | None:
    """Run phases as convolutions, see ``transpose_conv.phases``."""
    x, filter, bias = context.operands
    (y,) = context.results
    if x is None or filter is None or not fits(NONE, x, y, op.filter, op.bias):
        return None
    arrays = Arrays(x, filter, bias, y)
    return phases(arrays, (op.stride_height, op.stride_width), op.padding.kind, NONE)
