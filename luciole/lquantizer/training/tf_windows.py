"""TensorFlow forms of the operators that slide windows over images: convolutions and pools."""

from __future__ import annotations

from typing import Protocol

from luciole.ir import ShapeError
from luciole.ir.ops.conv_2d import Conv2D, check_groups
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.pool_2d import AveragePool2D, MaxPool2D
from luciole.ir.ops.transpose_conv import TransposeConv
from luciole.ir.rules import padding_before, window
from luciole.lquantizer.training.tensorflow import Tensor, TensorFlow
from luciole.lquantizer.training.tf_math import activate
from luciole.lquantizer.training.tf_table import differentiable
from luciole.schema.enums import ActivationFunctionType, Padding


class Sliding(Protocol):
    """The windows of all convolutions."""

    padding: Padding
    stride_w: int
    stride_h: int
    dilation_w_factor: int
    dilation_h_factor: int


class Activated(Protocol):
    """An operator with a fused activation."""

    activation: ActivationFunctionType


def convolution(tf: TensorFlow, op: Sliding, x: Tensor, filter: Tensor) -> Tensor:
    """Add up each window: x NHWC, filter [kh, kw, c, o], c a divisor of x's channels.

    Groups are taken one by one and dilation becomes zeros in the filter: on a CPU TensorFlow has
    no gradients for either.
    """
    channels, depth = x.shape[-1], filter.shape[2]
    check_groups(channels, depth, filter.shape[3])
    strides, spread = (op.stride_h, op.stride_w), _dilated(tf, op, filter)
    groups = channels // depth
    parts = zip(tf.split(x, groups, -1), tf.split(spread, groups, -1), strict=True)
    sums = [tf.nn.conv2d(part, own, strides, op.padding.name) for part, own in parts]
    return sums[0] if groups == 1 else tf.concat(sums, -1)


def _dilated(tf: TensorFlow, op: Sliding, filter: Tensor) -> Tensor:
    """Put zeros between the taps of a filter [kh, kw, c, o]."""
    dh, dw = op.dilation_h_factor, op.dilation_w_factor
    if dh == dw == 1:
        return filter
    h, w, c, o = filter.shape
    apart = tf.reshape(filter, (h, 1, w, 1, c, o))
    wide = tf.pad(apart, ((0, 0), (0, dh - 1), (0, 0), (0, dw - 1), (0, 0), (0, 0)))
    return tf.reshape(wide, (h * dh, w * dw, c, o))[: (h - 1) * dh + 1, : (w - 1) * dw + 1]


def _finished(tf: TensorFlow, op: Activated, y: Tensor, bias: Tensor | None) -> Tensor:
    """Apply bias and activation."""
    return activate(tf, y if bias is None else y + tf.reshape(bias, (-1,)), op.activation)


@differentiable(Conv2D, DepthwiseConv2D)
def convolve(
    tf: TensorFlow, op: Conv2D | DepthwiseConv2D, x: Tensor, filter: Tensor, bias: Tensor | None
) -> Tensor:
    """Convolve all channels with filters that come as [o, kh, kw, c], or each channel with its own,
    which come as [1, kh, kw, channels * multiplier].
    """
    return _finished(tf, op, products(tf, op, x, filter), bias)


def products(tf: TensorFlow, op: Conv2D | DepthwiseConv2D, x: Tensor, filter: Tensor) -> Tensor:
    """Convolve with a filter as the operator lays it out, without its bias and activation."""
    if isinstance(op, Conv2D):
        return convolution(tf, op, x, tf.transpose(filter, (1, 2, 3, 0)))
    _, kh, kw, outputs = filter.shape
    channels = x.shape[-1]
    taps = _dilated(tf, op, tf.reshape(filter, (kh, kw, channels, outputs // channels)))
    return _depthwise(tf, op, x, taps)


def _depthwise(tf: TensorFlow, op: Sliding, x: Tensor, taps: Tensor) -> Tensor:
    """Convolve with one stride for both axes, as TensorFlow wants it: with two, every window is
    computed, most left.
    """
    sh, sw = op.stride_h, op.stride_w
    if sh == sw:
        return tf.nn.depthwise_conv2d(x, taps, (1, sh, sw, 1), op.padding.name)
    extents = zip(x.shape[1:3], taps.shape[:2], (sh, sw), strict=True)
    pads = [_border(op, size, kernel, stride) for size, kernel, stride in extents]
    padded = tf.pad(x, ((0, 0), *pads, (0, 0)))
    return tf.nn.depthwise_conv2d(padded, taps, (1, 1, 1, 1), "VALID")[:, ::sh, ::sw]


def _border(op: Sliding, size: int | None, kernel: int, stride: int) -> tuple[int, int]:
    """Count the zeros before and after an axis."""
    if size is None:
        raise ShapeError("height and width are unknown, two different strides need them")
    if op.padding == Padding.VALID:
        return 0, 0
    before = padding_before(size, kernel, stride, 1, op.padding)
    outputs = window(size, kernel, stride, 1, op.padding) or 0
    return before, max((outputs - 1) * stride + kernel - size - before, 0)


@differentiable(TransposeConv)
def transpose_conv(
    tf: TensorFlow, op: TransposeConv, sizes: Tensor, filter: Tensor, x: Tensor, bias: Tensor | None
) -> Tensor:
    """Convolve backwards with a filter [o, kh, kw, c]; the number of records is the data's own."""
    taps = tf.transpose(filter, (1, 2, 0, 3))
    shape = tf.concat([tf.shape(x)[:1], tf.cast(sizes, tf.int32)[1:]], 0)
    strides = (op.stride_h, op.stride_w)
    y = tf.nn.conv2d_transpose(x, taps, shape, strides, op.padding.name)
    return _finished(tf, op, y, bias)


@differentiable(AveragePool2D, MaxPool2D)
def pool_2d(tf: TensorFlow, op: AveragePool2D | MaxPool2D, x: Tensor) -> Tensor:
    """Average windows, or take their maxima; what lies in the padding does not count."""
    pool = tf.nn.avg_pool2d if isinstance(op, AveragePool2D) else tf.nn.max_pool2d
    kernel, strides = (op.filter_height, op.filter_width), (op.stride_h, op.stride_w)
    return activate(tf, pool(x, kernel, strides, op.padding.name), op.activation)
