"""Parts of networks on images: tensors [1, height, width, channels]."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, Value
from luciole.ir.ops.activations import Relu, Relu6
from luciole.ir.ops.concatenation import Concatenation
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.depth_to_space import DepthToSpace, SpaceToDepth
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.mirror_pad import MirrorPad
from luciole.ir.ops.pad import Pad
from luciole.ir.ops.pool_2d import AveragePool2D, MaxPool2D
from luciole.ir.ops.reduce import Mean, ReduceMax, Sum
from luciole.ir.ops.resize import ResizeBilinear, ResizeNearestNeighbor
from luciole.ir.ops.transpose_conv import TransposeConv
from luciole.schema.enums import ActivationFunctionType as Act
from luciole.schema.enums import Padding
from tests.fuzz.rewriting.anywhere import standardized
from tests.fuzz.rewriting.maker import Maker

ACTIVATIONS = (Act.NONE, Act.RELU, Act.RELU6)
_LARGEST = 8
"""Pixels of a side from which images are made no larger."""


def _bias(m: Maker, channels: int) -> Value:
    return m.constant(m.normal(channels, size=0.3))


def conv(m: Maker, x: Value) -> Value:
    """A convolution, perhaps with steps or holes."""
    inputs, outputs = x.dims[3], m.count(2, 5) * 2
    size, holes = m.one_of((1, 3)), m.one_of((1, 1, 2))
    steps = m.count(1, 2) if holes == 1 and min(x.dims[1:3]) > 2 else 1
    layer = Conv2D(
        x,
        m.weights(outputs, size, size, inputs),
        _bias(m, outputs),
        stride_h=steps,
        stride_w=steps,
        dilation_h_factor=holes,
        dilation_w_factor=holes,
        activation=m.one_of(ACTIVATIONS),
    )
    return m.add(layer)


def depthwise(m: Maker, x: Value, weights: Array | None = None, bias: Array | None = None) -> Value:
    """A filter for each channel, two perhaps where none are given."""
    channels = x.dims[3]
    times = m.count(1, 2) if weights is None else 1
    if weights is None:
        weights = m.normal(1, 3, 3, channels * times) / np.float32(3)
    offsets = m.normal(channels * times, size=0.3) if bias is None else bias
    layer = DepthwiseConv2D(
        x,
        m.constant(weights),
        m.constant(offsets),
        stride_h=1,
        stride_w=1,
        depth_multiplier=times,
        activation=Act.NONE if bias is not None else m.one_of(ACTIVATIONS),
    )
    return m.add(layer)


def uneven_layers(m: Maker, x: Value) -> Value:
    """Layers as MobileNet has them, with channels of uneven sizes that a RELU or RELU6 lets pass:
    1 x 1, depthwise, 1 x 1.
    """
    inputs, hidden, cut_off = x.dims[3], m.count(4, 8) * 2, m.chance(0.5)
    first, second = (m.factors(hidden, cut_off) for _ in range(2))
    size = np.float32((0.3 if cut_off else 1) / inputs**0.5)
    wide = m.normal(hidden, 1, 1, inputs) * size * first[:, None, None, None]
    layer = Conv2D(x, m.constant(wide), m.constant(m.normal(hidden, size=0.3) * first))
    layer.stride_h = layer.stride_w = 1
    kind = Relu6 if cut_off else Relu
    y = m.add(kind(m.add(layer)))
    deep = m.normal(1, 3, 3, hidden) / np.float32(3) * (second / first)
    y = m.add(kind(depthwise(m, y, deep, m.normal(hidden, size=0.3) * second)))
    narrow = m.normal(inputs, 1, 1, hidden) / np.float32(hidden**0.5) / second
    last = Conv2D(y, m.constant(narrow), _bias(m, inputs), stride_h=1, stride_w=1)
    return m.add(Add(x, m.add(last))) if m.chance(0.5) else m.add(last)


def larger(m: Maker, x: Value) -> Value:
    """A transposed convolution, an image resized, or channels put side by side."""
    _, height, width, channels = x.dims
    kind = m.count(0, 3)
    if max(height, width) > _LARGEST or kind == 0:
        return conv(m, x)
    if kind == 1:
        size = m.ints(2 * height, 2 * width)
        if m.chance(0.5):
            return m.add(ResizeNearestNeighbor(x, size))
        return m.add(ResizeBilinear(x, size, half_pixel_centers=m.chance(0.5)))
    if kind == 2 and channels % 4 == 0:
        return m.add(DepthToSpace(x, block_size=2))
    outputs = m.count(2, 4) * 2
    sizes = m.ints(1, 2 * height, 2 * width, outputs)
    filters = m.weights(outputs, 3, 3, channels)
    layer = TransposeConv(sizes, filters, x, _bias(m, outputs), stride_h=2, stride_w=2)
    return m.add(layer)


def pools(m: Maker, x: Value) -> Value:
    """Pools, two of them perhaps put together."""
    if min(x.dims[1:3]) < 2:
        return conv(m, x)
    steps, padding = m.count(1, 2), m.one_of((Padding.SAME, Padding.VALID))
    kinds = m.one_of(((MaxPool2D,), (AveragePool2D,), (MaxPool2D, AveragePool2D)))
    ways = []
    for kind in kinds:
        pool = kind(x, padding=padding, filter_height=2, filter_width=2)
        pool.stride_h = pool.stride_w = steps
        ways.append(m.add(pool))
    return ways[0] if len(ways) == 1 else m.add(Concatenation(tuple(ways), axis=3))


def padded(m: Maker, x: Value) -> Value:
    """A border, and a convolution that takes it away again."""
    borders = m.constant(np.array([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32))
    mirrored = m.chance(0.4) and min(x.dims[1:3]) > 1 and not m.plain
    wide = m.add(MirrorPad(x, borders) if mirrored else Pad(x, borders))
    outputs = m.count(2, 4) * 2
    layer = Conv2D(wide, m.weights(outputs, 3, 3, x.dims[3]), _bias(m, outputs))
    layer.stride_h = layer.stride_w = 1
    layer.padding = Padding.VALID
    return m.activated(m.add(layer))


def batch_norm(m: Maker, x: Value) -> Value:
    """A convolution without a bias, times and plus constants."""
    channels = x.dims[3]
    layer = Conv2D(x, m.weights(channels, 3, 3, channels), None, stride_h=1, stride_w=1)
    return m.add(m.one_of((Relu, Relu6))(m.affine(m.add(layer))))


def instance_norm(m: Maker, x: Value) -> Value:
    return m.affine(standardized(m, x, (1, 2)))


def bottleneck(m: Maker, x: Value) -> Value:
    """A residual block."""
    channels = x.dims[3]
    first = Conv2D(x, m.weights(channels, 3, 3, channels), _bias(m, channels), stride_h=1)
    first.stride_w, first.activation = 1, Act.RELU
    second = Conv2D(m.add(first), m.weights(channels, 3, 3, channels), _bias(m, channels))
    second.stride_h = second.stride_w = 1
    return m.add(Add(x, m.add(second), activation=m.one_of(ACTIVATIONS)))


def folded(m: Maker, x: Value) -> Value:
    """Four pixels as the channels of one."""
    if x.dims[1] % 2 or x.dims[2] % 2 or x.dims[3] > 12:
        return depthwise(m, x)
    return m.add(SpaceToDepth(x, block_size=2))


BLOCKS = (
    *(conv, conv, depthwise, uneven_layers, uneven_layers, larger, pools, padded, batch_norm),
    *(instance_norm, bottleneck, folded),
)
PLAIN = (conv, conv, depthwise, uneven_layers, pools, padded, batch_norm, bottleneck)
"""Of operators that have a C form."""


def flattened(m: Maker, x: Value) -> Value:
    """One row of channels: all pixels side by side, or their mean, sum or largest."""
    _, height, width, channels = x.dims
    if m.chance(0.3) and height * width * channels <= 256:
        return m.reshape(x, 1, height * width * channels)
    if m.chance(0.5):
        pool = AveragePool2D(x, padding=Padding.VALID, filter_height=height, filter_width=width)
        pool.stride_h = pool.stride_w = 1
        return m.reshape(m.add(pool), 1, channels)
    kinds = (Mean,) if m.plain else (Mean, Mean, Sum, ReduceMax)
    return m.add(m.one_of(kinds)(x, m.ints(1, 2), keep_dims=False))
