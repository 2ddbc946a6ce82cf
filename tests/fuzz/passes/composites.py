"""What passes look for: composites, and constants that become part of layers."""

from __future__ import annotations

import math

import numpy as np

from luciole.ir import Value
from luciole.ir.ops.activations import FUSED, Relu, Relu6, Tanh
from luciole.ir.ops.comparisons import Less
from luciole.ir.ops.concatenation import Concatenation
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.elementwise_binary import (
    Add,
    Div,
    Maximum,
    Minimum,
    Mul,
    Pow,
    SquaredDifference,
    Sub,
)
from luciole.ir.ops.elementwise_unary import Abs, Exp, Neg, Rsqrt, Sqrt, Square
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.gelu import Gelu
from luciole.ir.ops.reduce import Mean, ReduceMax, Sum
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.rms_norm import RmsNorm
from luciole.ir.ops.select import SelectV2
from luciole.ir.ops.slice import Slice
from luciole.ir.ops.space_to_batch_nd import BatchToSpaceND, SpaceToBatchND
from luciole.ir.ops.split import Split
from luciole.ir.ops.transpose_conv import TransposeConv
from luciole.schema.enums import ActivationFunctionType, Padding
from tests.fuzz.passes.building import Builder
from tests.fuzz.passes.patterns import image, pattern


def scaled(b: Builder, x: Value, number: float) -> Value:
    """A number times x, as a product or a quotient."""
    if b.chance():
        return b.either(Mul, x, b.number(number))
    return b.put(Div(x, b.number(1 / number)))


@pattern("fuse_gelu")
def gelu(b: Builder) -> Value:
    x = b.around(image(b))
    root = math.sqrt(2 / math.pi)
    cube = b.put(Pow(x, b.number(3))) if b.chance() else b.either(Mul, b.put(Mul(x, x)), x)
    if b.chance():
        inner = scaled(b, b.either(Add, x, b.either(Mul, cube, b.number(0.044715))), root)
    else:
        inner = b.either(Add, scaled(b, x, root), scaled(b, cube, 0.044715 * root))
    share = b.either(Add, b.put(Tanh(inner)), b.number(1 if b.chance(0.9) else 1.1))
    if b.chance():
        return b.either(Mul, scaled(b, x, 0.5), share)
    return (
        b.either(Mul, x, scaled(b, share, 0.5))
        if b.chance()
        else scaled(b, b.either(Mul, x, share), 0.5)
    )


@pattern("fuse_hard_swish")
def hard_swish(b: Builder) -> Value:
    x = b.put(Mul(image(b), b.number(3)))
    if b.chance():
        cut = b.put(Add(x, b.number(3), activation=ActivationFunctionType.RELU6))
    else:
        cut = b.put(Relu6(b.either(Add, x, b.number(3))))
    if b.chance():
        return scaled(b, b.either(Mul, x, cut), 1 / (6 if b.chance(0.9) else 5))
    return b.either(Mul, x, scaled(b, cut, 1 / 6))


@pattern("fuse_logistic")
def logistic(b: Builder) -> Value:
    x = b.put(Mul(image(b), b.number(b.pick(1, 30, 200))))
    below = b.put(Neg(x)) if b.chance() else scaled(b, x, -1)
    one = b.number(1 if b.chance(0.9) else 2)
    divisor = b.either(Add, b.put(Exp(below)), one)
    return b.put(Div((b.number(1), x, b.number(3))[b.pick(0, 1, 2)], divisor))


@pattern("fuse_prelu")
def prelu(b: Builder) -> Value:
    x = b.around(image(b))
    a = b.channel(x.dims[3], b.random.uniform(0.05, 0.6, x.dims[3]))
    form = b.pick(0, 1, 2, 3)
    if form == 0:
        below = scaled(b, b.put(Sub(x, b.put(Abs(x)))), 0.5)
        return b.either(Add, b.put(Relu(x)), b.either(Mul, below, a))
    if form == 1:
        return b.put(Sub(b.put(Relu(x)), b.either(Mul, b.put(Relu(b.put(Neg(x)))), a)))
    if form == 2:
        below = b.either(Minimum, x, b.number(0))
        return b.either(Add, b.either(Maximum, x, b.number(0)), b.either(Mul, a, below))
    return b.either(Add, b.put(Relu(x)), b.put(Neg(b.either(Mul, a, b.put(Relu(b.put(Neg(x))))))))


@pattern("fuse_softmax")
def softmax(b: Builder) -> Value:
    x = b.around(b.input(2, 3, 5))
    last = b.ints(b.pick(2, -1, 1))
    if b.chance():
        x = b.put(Sub(x, b.put(ReduceMax(x, last, keep_dims=True))))
    powers = b.put(Exp(x))
    return b.put(Div(powers, b.put(Sum(powers, last, keep_dims=True))))


def divided(b: Builder, x: Value, square: Value, epsilon: float) -> Value:
    """x / sqrt(square + epsilon), in one of the ways."""
    below = b.either(Add, square, b.number(epsilon))
    form = b.pick(0, 1, 2)
    if form == 0:
        return b.either(Mul, x, b.put(Rsqrt(below)))
    root = b.put(Sqrt(below) if form == 1 else Pow(below, b.number(0.5)))
    return b.put(Div(x, root))


@pattern("fuse_rmsnorm", "fuse_mul_with_rmsnorm")
def rms_norm(b: Builder) -> Value:
    x = b.around(b.input(2, 3, 6), 1)
    square = b.put(Square(x)) if b.chance() else b.put(Mul(x, x))
    y = divided(b, x, b.put(Mean(square, b.ints(-1), keep_dims=True)), 1e-3)
    y = b.either(Mul, y, b.normal(6)) if b.chance() else y
    y = b.put(RmsNorm(y, b.normal(6), epsilon=0.01))
    return b.either(Mul, y, b.normal(b.pick(1, 6)))


@pattern("fuse_instnorm")
def instance_norm(b: Builder) -> Value:
    x = b.around(b.input(2, 5, b.pick(5, 7)) if b.chance(0.25) else image(b), 1)
    flat = len(x.dims) == 3
    axes = b.ints(2) if flat else b.ints(*((1, 2), (2, 1), (1, 2), (1, 3))[b.pick(0, 1, 2, 3)])
    channels = x.dims[1 if flat else 3]
    mean = b.put(Mean(x, axes, keep_dims=True))
    centred = b.put(Sub(x, mean))
    square = (
        b.put(SquaredDifference(x, mean)),
        b.put(Square(centred)),
        b.put(Mul(centred, centred)),
    )[b.pick(0, 1, 2)]
    variance = b.put(Mean(square, axes, keep_dims=True))
    along_other = x.dims[2] == channels and b.chance()  # which no INSTANCE_NORM has
    gamma = b.normal(channels, 1) if flat != along_other else b.normal(channels)
    beta = b.normal(1, channels, 1) if flat else b.normal(1, 1, 1, channels)
    if b.chance():
        y = b.either(Mul, divided(b, centred, variance, 1e-3), gamma)
        return b.put(Add(y, beta, activation=b.activation()))
    factor = b.either(Mul, b.put(Rsqrt(b.put(Add(variance, b.number(1e-3))))), gamma)
    shift = b.put(Sub(beta, b.either(Mul, mean, factor)))
    return b.put(Add(b.either(Mul, x, factor), shift, activation=b.activation()))


@pattern("fuse_rope")
def rope(b: Builder) -> Value:
    x = b.around(b.input(1, 2, 3, 6), 1)
    sin, cos = b.normal(3, 6), b.normal(1, 1, 3, 6)
    if b.chance():
        first, second = b.put_all(Split(b.ints(b.pick(3, -1)), x, num_splits=2), 2)
    else:
        first = b.put(Slice(x, b.ints(0, 0, 0, 0), b.ints(1, 2, 3, 3)))
        second = b.put(Slice(x, b.ints(0, 0, 0, 3), b.ints(-1, -1, -1, -1)))
    parts = (b.put(Neg(second)), first) if b.chance(0.8) else (b.put(Neg(first)), second)
    turned = b.put(Concatenation(parts, axis=3))
    return b.either(Add, b.either(Mul, x, cos), b.either(Mul, turned, sin))


def layer(b: Builder, x: Value, kind: int, *, activation: bool = False) -> Value:
    """A layer [.., o] on images [1, h, w, c]: convolution, depthwise, dense or transposed."""
    channels, size = x.dims[3], b.pick(1, 2, 3)
    outputs = b.pick(3, 5) if kind != 1 else channels * b.pick(1, 2)
    bias = b.normal(outputs) if b.chance(0.7) else None
    fused = b.activation() if activation else ActivationFunctionType.NONE
    fits = min(x.dims[1:3]) >= size
    padding = Padding.VALID if fits and b.chance() else Padding.SAME
    if kind == 0:
        weights = b.normal(outputs, size, size, channels)
        conv = Conv2D(x, weights, bias, padding=padding, activation=fused)
        conv.stride_w, conv.stride_h = 1, b.pick(1, 2)
        return b.put(conv)
    if kind == 1:
        op = DepthwiseConv2D(
            x, b.normal(1, size, size, outputs), bias, padding=padding, activation=fused
        )
        op.stride_w = op.stride_h = 1
        op.depth_multiplier = outputs // channels
        return b.put(op)
    if kind == 2:
        weights = b.normal(outputs, channels)
        return b.put(FullyConnected(x, weights, bias, keep_num_dims=True, activation=fused))
    stride = b.pick(1, 2)
    extents = [
        (n - 1) * stride + size if padding == Padding.VALID else n * stride for n in x.dims[1:3]
    ]
    sizes = b.ints(1, *extents, outputs)
    transposed = TransposeConv(
        sizes, b.normal(outputs, size, size, channels), x, bias, padding=padding
    )
    transposed.stride_w = transposed.stride_h = stride
    return b.put(transposed)


@pattern(
    *("fuse_batch_norm", "fuse_batchnorm_with_conv", "fuse_batchnorm_with_dwconv"),
    *("fuse_batchnorm_with_tconv", "fuse_add_with_conv", "fuse_add_with_fully_connected"),
    *("fuse_add_with_tconv", "fuse_mul_with_conv", "fuse_mul_with_fullyconnected"),
    "fuse_activation_function",
)
def batch_norm(b: Builder) -> Value:
    y = image(b)
    for kind in b.random.permutation(4)[:2]:
        y = layer(b, y, int(kind))
        channels = y.dims[3]
        scale, shift = b.channel(channels), b.channel(channels)
        form = b.pick(0, 1, 2, 3)
        y = b.either(Add, y, shift) if form == 0 else y
        y = b.either(Mul, y, scale) if form != 3 else y
        y = b.either(Add, y, shift) if form in (1, 3) else y
        y = b.put(FUSED[ActivationFunctionType.RELU](y)) if b.chance() else y
    return y


@pattern(
    *("fuse_add_to_fullyconnected_bias", "fuse_mul_to_fullyconnected_weights"),
    *("fuse_mul_to_conv_weights", "fuse_add_to_conv_bias"),
)
def in_front(b: Builder) -> Value:
    x = image(b)
    for kind in b.random.permutation(4)[:2]:
        channels = x.dims[3]
        x = b.either(Add, x, b.channel(channels)) if b.chance(0.7) else x
        x = b.either(Mul, x, b.channel(channels)) if b.chance(0.7) else x
        x = layer(b, x, int(kind), activation=kind != 3)
    return x


@pattern("fuse_horizontal_fc_layers")
def side_by_side(b: Builder) -> Value:
    x = b.around(b.input(3, 4))
    y = [
        b.put(FullyConnected(x, b.normal(5, 4), b.normal(5) if b.chance() else None)) for _ in "ab"
    ]
    return b.put(Add(y[0], y[1], activation=b.activation()))


@pattern("fuse_slice_with_tconv")
def sliced(b: Builder) -> Value:
    size, stride = b.pick(2, 3, 4), b.pick(1, 2)
    x = b.around(b.input(1, 4, 5, 3))
    extents = [(n - 1) * stride + size for n in x.dims[1:3]]
    op = TransposeConv(b.ints(1, *extents, 4), b.normal(4, size, size, 3), x, b.normal(4))
    op.padding, op.stride_w, op.stride_h = Padding.VALID, stride, stride
    first = b.pick(0, 1)
    begin, channel = (first, first, b.pick(0, 1)), b.pick(2, 3)
    counts = [n - first - b.pick(0, 1) for n in extents]
    return b.put(Slice(b.put(op), b.ints(0, *begin), b.ints(1, *counts, channel)))


@pattern("fuse_dilated_conv")
def dilated(b: Builder) -> Value:
    x, block, size = b.input(1, 8, 8, 2), b.pick(2, 4), b.pick(2, 3)
    reach = (size - 1) * block
    before, behind = (reach // 2, reach - reach // 2) if b.chance() else (0, 0)
    fill = -(8 + before + behind) % block
    pads = np.array([[before, behind + fill]] * 2, np.int32)
    crops = np.array([[0, fill]] * 2, np.int32)
    add = b.graph.add_constant
    moved = b.put(SpaceToBatchND(x, b.ints(block, block), add(b.graph.unique_name("pads"), pads)))
    if moved.dims[1] < size:
        return b.put(Abs(x))
    if b.chance():
        y: Conv2D | DepthwiseConv2D = Conv2D(
            moved, b.normal(3, size, size, 2), b.normal(3), padding=Padding.VALID
        )
    else:
        y = DepthwiseConv2D(moved, b.normal(1, size, size, 2), b.normal(2), padding=Padding.VALID)
        y.depth_multiplier = 1
    y.stride_w = y.stride_h = 1
    y.activation = b.activation()
    return b.put(
        BatchToSpaceND(b.put(y), b.ints(block, block), add(b.graph.unique_name("crops"), crops))
    )


@pattern("fuse_preactivation_batchnorm")
def preactivation(b: Builder) -> Value:
    x = image(b)
    channels = x.dims[3]

    def convolution(value: Value) -> Value:
        weights = b.normal(channels, 3, 3, channels, scale=0.2)
        op = Conv2D(value, weights, b.normal(channels))
        op.stride_w = op.stride_h = 1
        return b.put(op)

    x = convolution(x)
    for _ in range(b.pick(1, 2)):
        sign = 1 if b.chance(0.8) else -1
        y = b.either(Mul, x, b.constant(sign * b.random.uniform(0.5, 2, channels)))
        y = b.put(Add(y, b.normal(channels), activation=ActivationFunctionType.RELU))
        y = convolution(convolution(y)) if b.chance(0.8) else convolution(b.put(Relu(y)))
        x = b.either(Add, x, y) if b.chance(0.8) else y
    return x


@pattern("replace_cw_mul_add_with_depthwise_conv", "forward_reshape_to_unaryop")
def by_channel(b: Builder) -> Value:
    x = b.around(image(b))
    x = b.either(Add, b.either(Mul, x, b.channel(x.dims[3])), b.channel(x.dims[3]))
    return b.put(Abs(b.put(Reshape(x, b.ints(1, -1)))))


@pattern("replace_with_fc_gelu_fc")
def between_layers(b: Builder) -> Value:
    x, v, a = b.around(b.input(3, 4)), b.random.normal(0, 1, (5, 4)), b.random.normal(0, 1, 5)
    above = b.put(FullyConnected(x, b.constant(v), b.constant(a)))
    below = b.put(FullyConnected(x, b.constant(v * 0.5**0.5), b.constant(a * 0.5**0.5)))
    share = b.either(Add, erf(b, below), b.number(1))
    return b.put(FullyConnected(b.either(Mul, above, share), b.normal(2, 5), b.normal(2)))


@pattern("fuse_gelu")
def exact_gelu(b: Builder) -> Value:
    x = b.around(image(b))
    share = b.either(Add, erf(b, scaled(b, x, 0.5**0.5)), b.number(1))
    if b.chance():
        return b.either(Mul, scaled(b, x, 0.5), share)
    return scaled(b, b.either(Mul, x, share), 0.5)


def erf(b: Builder, x: Value) -> Value:
    """The error function as the importer of ONNX spells it."""
    small = b.graph.append(Less(b.put(Abs(x)), b.number(1e-3)), b.graph.unique_name("small")).output
    y = b.put(Mul(x, b.number(2**0.5)))
    share = b.put(Div(b.put(Gelu(y)), b.put(SelectV2(small, b.number(1), y))))
    far = b.put(Sub(b.put(Mul(share, b.number(2))), b.number(1)))
    series = b.put(Add(b.put(Mul(b.put(Mul(x, x)), b.number(-1 / 3))), b.number(1)))
    near = b.put(Mul(series, b.put(Mul(x, b.number(2 / math.pi**0.5)))))
    return b.put(SelectV2(small, near, far))
