"""Layers of float inputs and integer weights, whose inputs are quantized when they run: TFLite's
hybrid layers.

Weights keep their numbers exactly. Inputs are quantized by TFLite's rule, with a grid for each row
or image in place of one for the whole tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from luciole.importers.onnx.building import Building
from luciole.importers.onnx.errors import RefusedError
from luciole.importers.onnx.hybrid_nodes import MICROSOFT, OURS
from luciole.importers.onnx.node import Node
from luciole.importers.onnx.operators.convolution import convolved
from luciole.importers.onnx.operators.matrix import matmul
from luciole.importers.onnx.operators.recurrent import recurrent
from luciole.importers.onnx.rules import Results, rule
from luciole.importers.onnx.windows import windows_of
from luciole.ir import Array, TensorType, Value
from luciole.ir.ops import elementwise_binary as binary
from luciole.ir.passes.fuse_quantization import fuse_weights_of
from luciole.ir.quantization import Affine

_FROM_UINT8 = 128
"""Difference between the codes of UINT8 and of INT8."""


@dataclass(frozen=True)
class Weights:
    """Constant integers with their scales and zero points: one, or one for each output along an
    ``axis``.
    """

    source: Value
    codes: Array
    """Integers less the zero points, in any number of bits."""
    scale: Array
    axis: int

    @staticmethod
    def read(k: Building, codes: Value, scale: Value, point: Value | None, axis: int) -> Weights:
        """Read weights. Raises RefusedError for computed ones and for scales of another axis."""
        integers, scales = k.known(codes).astype(np.int32), k.known(scale).reshape(-1)
        points = np.zeros(1) if point is None else k.known(point).reshape(-1)
        axis = k.axis(axis, codes)
        if not {scales.size, points.size} <= {1, integers.shape[axis]}:
            raise RefusedError(f"{scales.size} scales for an axis of {integers.shape[axis]}")
        return Weights(
            codes, integers - _spread(points.astype(np.int32), axis, integers), scales, axis
        )

    @property
    def is_short(self) -> bool:
        """Whether the integers have 8 bits and their zero point is 0."""
        least, most = self.codes.min(initial=0), self.codes.max(initial=0)
        return bool(least >= -_FROM_UINT8 and most < _FROM_UINT8)

    def real(self, k: Building) -> Value:
        """Add the integers and the DEQUANTIZE that makes them numbers."""
        zeros = np.zeros(self.scale.size)
        affine = Affine.channels(self.scale, zeros, self.axis, TensorType.INT8)
        return k.dequantized(self.codes.astype(np.int8), affine, self.source)

    def shortened(self) -> tuple[Weights, Array]:
        """Take a number off that leaves 8 bits, of each output: the other weights, and it."""
        axes = tuple(i for i in range(self.codes.ndim) if i != self.axis)
        least, most = self.codes.min(axes), self.codes.max(axes)
        offset = (least + most + 1) // 2
        rest = self.codes - _spread(offset, self.axis, self.codes)
        return Weights(self.source, rest, self.scale, self.axis), offset * self.scale


def _spread(vector: Array, axis: int, array: Array) -> Array:
    """Give a number for each index of an axis the axes of an array."""
    shape = [1] * array.ndim
    shape[axis] = -1
    return vector.reshape(shape)


Multiply = Callable[[Value], Value]
"""Multiplies a layer's input by weights."""


def hybrid(k: Building, weights: Weights, multiply: Multiply, ones: Array, axis: int) -> Value:
    """Add a layer with integer weights. What these have beyond 8 bits is one number for each output
    times the sum of what the output reads: products by ``ones``, with outputs along an ``axis``.
    """
    if weights.is_short:
        return _of_integers(k, multiply, weights.real(k))
    rest, offset = weights.shortened()
    product = _of_integers(k, multiply, rest.real(k))
    one = Weights(weights.source, ones.astype(np.int32), np.ones(1, np.float32), weights.axis)
    sums = _of_integers(k, multiply, one.real(k))
    shape = [1] * len(product.shape)
    shape[axis] = offset.size
    factor = k.constant(offset.astype(np.float32).reshape(shape))
    return k.add(binary.Add(product, k.add(binary.Mul(sums, factor))))


def _of_integers(k: Building, multiply: Multiply, weights: Value) -> Value:
    """Multiply, and let the layers that do so read the integers."""
    before = len(k.graph.ops)
    product = multiply(weights)
    for op in k.graph.ops[before:]:
        fuse_weights_of(op, k.computing.has_kernel)
    return product


@rule("DynamicQuantizeMatMul", domain=MICROSOFT)
def dynamic_matmul(k: Building, node: Node) -> Value:
    """Multiply by a matrix of integers and add a bias."""
    x, bias = node[0], node.get(4)
    weights = Weights.read(k, node[1], node[2], node.get(3), -1)
    ones = np.ones((*weights.codes.shape[:-1], 1))
    product = hybrid(k, weights, lambda w: matmul(k, x, w), ones, -1)
    return product if bias is None else k.add(binary.Add(product, bias))


@rule("DynamicQuantizeConv", domain=OURS)
def dynamic_conv(k: Building, node: Node) -> Value:
    """Convolve with filters of integers."""
    x, groups = node[0], node.integer("group", 1)
    weights = Weights.read(k, node[1], node[2], node.get(3), 0)
    windows = windows_of(node, x.shape, weights.codes.shape[2:])
    ones = np.ones((1 if groups == 1 else len(weights.codes), *weights.codes.shape[1:]))
    return hybrid(k, weights, lambda w: convolved(k, x, w, None, windows, groups), ones, 1)


@rule("DynamicQuantizeLSTM", domain=MICROSOFT)
def dynamic_lstm(k: Building, node: Node) -> Results:
    """Run an LSTM whose weights are integers, with their numbers as floats: a step's state is not
    quantized.
    """
    weights = [_turned(k, node, slot, 8 + 2 * i) for i, slot in enumerate((1, 2))]
    operands = [node[0], *weights, *node.operands[3:8]]
    return recurrent(k, replace(node, kind="LSTM", opset=14, operands=operands))


def _turned(k: Building, node: Node, slot: int, scale: int) -> Value:
    """Dequantize weights [directions, inputs, gates units], and exchange the last two axes."""
    codes, scales = k.known(node[slot]).astype(np.float32), k.known(node[scale])
    points = k.known(node[scale + 1]).astype(np.float32)
    shape = (-1, 1, 1) if scales.size in (1, len(codes)) else (len(codes), 1, -1)
    real = (codes - points.reshape(shape)) * scales.reshape(shape)
    return k.constant(np.ascontiguousarray(real.transpose(0, 2, 1)), k.name(node[slot].name))
