"""Normalizations."""

from __future__ import annotations

import numpy as np

from luciole.importers.onnx.building import Building
from luciole.importers.onnx.errors import RefusedError
from luciole.importers.onnx.node import Node
from luciole.importers.onnx.operators.convolution import first, last, lifted, lowered
from luciole.importers.onnx.rules import rule
from luciole.ir import TensorType, Value
from luciole.ir.ops import comparisons, reduce
from luciole.ir.ops import elementwise_binary as binary
from luciole.ir.ops import elementwise_unary as unary
from luciole.ir.ops.local_response_normalization import LocalResponseNormalization


@rule("BatchNormalization")
def batch_normalization(k: Building, node: Node) -> Value:
    """Multiply and add by channel: what constants are, is one factor and one summand."""
    if node.flag("training_mode") or (node.opset < 7 and not node.flag("is_test")):
        raise RefusedError("it is to be trained")
    x, scale, bias, mean, variance = (node[slot] for slot in range(5))
    shape = (1, scale.shape[0], *[1] * (len(x.shape) - 2))
    if len(x.shape) == 1:
        shape = (scale.shape[0],)
    wide = k.like(variance, node.number("epsilon", 1e-5))
    deviation = k.add(unary.Sqrt(k.add(binary.Add(variance, wide))))
    factor = k.add(binary.Div(scale, deviation))
    summand = k.add(binary.Sub(bias, k.add(binary.Mul(mean, factor))))
    scaled = k.add(binary.Mul(x, k.reshape(k.cast(factor, x.dtype), shape)))
    return k.add(binary.Add(scaled, k.reshape(k.cast(summand, x.dtype), shape)))


def _standardized(k: Building, x: Value, axes: list[int], epsilon: float) -> Value:
    """Take the mean off, and divide by the standard deviation."""
    where = k.constant(np.array(axes, np.int32))
    away = k.add(binary.Sub(x, k.add(reduce.Mean(x, where, keep_dims=True))))
    squares = k.add(reduce.Mean(k.add(unary.Square(away)), where, keep_dims=True))
    deviation = k.add(unary.Sqrt(k.add(binary.Add(squares, k.like(x, epsilon)))))
    return k.add(binary.Div(away, deviation))


@rule("LayerNormalization")
def layer_normalization(k: Building, node: Node) -> Value:
    """Normalize each record along the last axes."""
    node.alone()
    x = k.cast(node[0], TensorType.FLOAT32)
    axis = k.axis(node.integer("axis", -1), x)
    normalized = _standardized(k, x, list(range(axis, len(x.shape))), node.number("epsilon", 1e-5))
    normalized = k.add(binary.Mul(k.cast(normalized, node[0].dtype), node[1]))
    bias = node.get(2)
    return normalized if bias is None else k.add(binary.Add(normalized, bias))


@rule("InstanceNormalization")
def instance_normalization(k: Building, node: Node) -> Value:
    """Normalize each channel of each image."""
    x = node[0]
    shape = (1, x.shape[1], *[1] * (len(x.shape) - 2))
    normalized = _standardized(k, x, list(range(2, len(x.shape))), node.number("epsilon", 1e-5))
    normalized = k.add(binary.Mul(normalized, k.reshape(node[1], shape)))
    return k.add(binary.Add(normalized, k.reshape(node[2], shape)))


@rule("LRN")
def local_response_normalization(k: Building, node: Node) -> Value:
    """Divide by a power of the squares of channels beside it."""
    size = node.integer("size")
    if size % 2 == 0:
        raise RefusedError(f"it sums {size} channels, an even number")
    flat = len(node[0].shape) == 3
    image = last(k, lifted(k, node[0]))
    normalized = k.add(
        LocalResponseNormalization(
            image,
            radius=(size - 1) // 2,
            bias=node.number("bias", 1.0),
            alpha=node.number("alpha", 1e-4) / size,
            beta=node.number("beta", 0.75),
        )
    )
    return lowered(k, first(k, normalized)) if flat else first(k, normalized)


@rule("LpNormalization")
def lp_normalization(k: Building, node: Node) -> Value:
    """Divide by the norm along an axis; zeros stay."""
    x, p = node[0], node.integer("p", 2)
    axes = k.constant(np.array([k.axis(node.integer("axis", -1), x)], np.int32))
    if p not in (1, 2):
        raise RefusedError(f"its norm is that of p {p}")
    sizes = k.add(unary.Abs(x)) if p == 1 else k.add(binary.Mul(x, x))
    norm = k.add(reduce.Sum(sizes, axes, keep_dims=True))
    norm = norm if p == 1 else k.add(unary.Sqrt(norm))
    zero = k.cast(k.add(comparisons.Equal(norm, k.like(norm, 0))), norm.dtype)
    return k.add(binary.Div(x, k.add(binary.Add(norm, zero))))
