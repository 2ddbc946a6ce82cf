"""Layers of int8 in the arithmetic of TFLite's kernels, bit for bit, in operators on integers.

Kernels round twice on the way to a code and halves away from 0 (``ir.analysis.fixed_point``), while
QuantizeLinear rounds once, halves to even: one code of some 500 differs behind a convolution, and
many more behind several. What is written here is for comparing and for runtimes on which codes must
not differ; other tools read it as integers, not as a quantized network.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from luciole.exporters.onnx.building import Building
from luciole.exporters.onnx.nodes import Term
from luciole.exporters.onnx.operators.convolutions import padded
from luciole.exporters.onnx.rules import exact_rule
from luciole.ir import Op, TensorType, Value
from luciole.ir.analysis.fixed_point import (
    Integers,
    activation_range,
    multiply,
    quantize_multiplier,
)
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.pool_2d import AveragePool2D
from luciole.ir.quantization import Affine
from luciole.schema.enums import ActivationFunctionType, Padding

FINER = 20
"""Bits by which sums of bytes are finer than the coarser operand: TFLite's ADD."""

_FRACTION, _OFFSET = 31, 61
"""Bits of a multiplier behind the point, and of the number that keeps sums positive while they are
divided.
"""

INT8, INT32 = TensorType.INT8, TensorType.INT32


class Scale(NamedTuple):
    """One scale and zero point."""

    scale: np.float32
    zero: int


def fits(op: Op) -> bool:
    """Return whether tensors have one scale of int8, and constants and shapes are those that the
    rules know.
    """
    read = op.operands if isinstance(op, Add) else op.operands[:1]
    return all(map(is_single, (*read, *op.results))) and _known(op)


def is_single(value: Value | None) -> bool:
    """Return whether a tensor has one scale of int8."""
    affine = None if value is None else Affine.given(value)
    return affine is not None and affine.dtype == INT8 and affine.scale.size == 1


def _known(op: Op) -> bool:
    if isinstance(op, Add):
        x, y = op.x, op.y
        return x.shape == y.shape and not x.is_constant and not y.is_constant
    read = op.operands[0]
    if read is None or None in (*read.shape[1:], *op.results[0].shape[1:]):
        return False
    if isinstance(op, AveragePool2D):
        return op.padding == Padding.VALID and scale_of(op.value) == scale_of(op.output)
    weights, bias = op.operands[1], (*op.operands, None)[2]
    known = bias is None or (bias.dtype == INT32 and bias.is_constant)
    int8 = weights is not None and weights.dtype == INT8 and weights.is_constant
    return int8 and known


def scale_of(value: Value) -> Scale:
    """Return a tensor's one scale and zero point."""
    scale, points = Affine.of(value, f"tensor {value.name!r}").parameters
    return Scale(scale[0], int(points[0]))


@exact_rule(Conv2D, DepthwiseConv2D, fits=fits)
def convolution(k: Building, op: Conv2D | DepthwiseConv2D) -> None:
    """Sum products of codes, add the bias, and bring the sums to the result's steps."""
    filter, depthwise = op.filter, isinstance(op, DepthwiseConv2D)
    order = (3, 0, 1, 2) if depthwise else (0, 3, 1, 2)
    channels = op.input.shape[3] or 0
    group = channels if depthwise else channels // max(filter.dims[3], 1)
    strides, dilations = (op.stride_h, op.stride_w), (op.dilation_h_factor, op.dilation_w_factor)
    kernel = filter.dims[1:3]
    options = padded(op.input.shape, kernel, strides, dilations, op.padding)
    options |= {"group": group} if group > 1 else {}
    x, zero = k.channels_first(op.input), code(k, scale_of(op.input).zero)
    sums = k.add("ConvInteger", x, k.weights(filter, order), zero, **options)
    if op.bias is not None and op.bias.data is not None:
        bias = op.bias.data.reshape(1, -1, 1, 1)
        sums = k.add("Add", sums, k.constant(bias))
    affine = Affine.of_weights(filter, 3 if depthwise else 0)
    product = np.float64(scale_of(op.input).scale) * affine.parameters[0].astype(np.float64)
    factors = (product / np.float64(scale_of(op.output).scale)).reshape(1, -1, 1, 1)
    exact = quantize_multiplier(factors)
    k.put_first(op.output, rescaled(k, sums, exact, op.output, op.activation))


def code(k: Building, zero: int) -> Term:
    """Store a zero point."""
    return k.constant(np.array(zero, np.int8))


def rescaled(
    k: Building,
    sums: Term,
    factors: tuple[Integers, Integers],
    result: Value,
    activation: ActivationFunctionType = ActivationFunctionType.NONE,
) -> Term:
    """Multiply sums by factors, multipliers and shifts, and cut them off: ``multiply`` in one
    division.

    With d = -shift > 0 both roundings are (s m + 2^30 + 2^(30 + d)) / 2^(31 + d), rounded down,
    less 2^31 in the dividend where s m + 2^30 is negative: halves go away from 0 in the second.
    """
    scale, zero = scale_of(result)
    multiplier, shift = (n.astype(np.int64) for n in factors)
    up, down = np.maximum(shift, 0), np.maximum(-shift, 0)
    offset = np.int64(1) << np.maximum(_OFFSET - _FRACTION - down, 0)
    divisor = np.int64(1) << (_FRACTION + down)
    half = np.where(down > 0, np.int64(1) << (_FRACTION - 1 + down), 0)
    least, most = activation_range(activation, INT8, scale, zero)
    numbers = (
        multiplier << up,
        np.where(down > 0, np.int64(1) << _FRACTION, 0),
        half + offset * divisor,
        divisor,
        offset - zero,
        np.int64(least),
        np.int64(most),
    )
    return k.own("Rescale", sums, *(k.constant(np.asarray(n, np.int64)) for n in numbers))


@exact_rule(Add, fits=fits)
def add(k: Building, op: Add) -> None:
    """Look both operands up on the common grid, add, and bring the sum to the result's steps."""
    sides = [scale_of(op.x), scale_of(op.y)]
    widest = 2 * float(max(side.scale for side in sides))
    first = any(k.is_first(value) for value in (op.x, op.y))
    parts = [
        _looked_up(k, k.channels_first(value) if first else k.of(value), side, widest)
        for value, side in zip((op.x, op.y), sides, strict=True)
    ]
    back = quantize_multiplier(widest / (2.0**FINER * float(scale_of(op.output).scale)))
    codes = rescaled(k, k.add("Add", *parts), back, op.output, op.activation)
    (k.put_first if first else k.put)(op.output, codes)


def _looked_up(k: Building, codes: Term, side: Scale, widest: float) -> Term:
    """Look each code up on the common grid: codes below 0 count from a table's end."""
    every = np.arange(256, dtype=np.uint8).view(np.int8).astype(np.int64)
    factor = quantize_multiplier(float(side.scale) / widest)
    table = multiply((every - side.zero) << FINER, *factor)
    return k.add("Gather", k.constant(table), k.cast(codes, INT32))


@exact_rule(AveragePool2D, fits=fits)
def average(k: Building, op: AveragePool2D) -> None:
    """Sum codes, and divide with halves away from 0."""
    kernel, channels = (op.filter_height, op.filter_width), op.value.shape[3] or 0
    ones = k.constant(np.ones((channels, 1, *kernel), np.int8))
    strides = [op.stride_h, op.stride_w]
    x = k.channels_first(op.value)
    sums = k.add("ConvInteger", x, ones, group=channels, strides=strides)
    count = kernel[0] * kernel[1]
    half = k.add("Mul", k.add("Sign", sums), k.number(count // 2, INT32))
    means = k.add("Div", k.add("Add", sums, half), k.number(count, INT32))
    limits = activation_range(op.activation, INT8, *scale_of(op.output))
    cut = k.add("Clip", means, *(k.number(n, INT32) for n in limits))
    k.put_first(op.output, k.cast(cut, INT8))
