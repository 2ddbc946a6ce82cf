"""Activations."""

from __future__ import annotations

import numpy as np

from luciole.importers.onnx.building import Building
from luciole.importers.onnx.errors import RefusedError
from luciole.importers.onnx.node import Node
from luciole.importers.onnx.operators.elementwise import FLOATS
from luciole.importers.onnx.rules import rule
from luciole.ir import TensorType, Value
from luciole.ir.ops import activations
from luciole.ir.ops import elementwise_binary as binary
from luciole.ir.ops import elementwise_unary as unary
from luciole.ir.ops.arg_min_max import ArgMax
from luciole.ir.ops.gelu import Gelu
from luciole.ir.ops.leaky_relu import LeakyRelu
from luciole.ir.ops.one_hot import OneHot
from luciole.ir.ops.prelu import PRelu
from luciole.ir.ops.softmax import LogSoftmax, Softmax


@rule("Relu")
def relu(k: Building, node: Node) -> Value:
    """Cut numbers below 0 off."""
    if node[0].dtype in FLOATS:
        return k.add(activations.Relu(node[0]))
    return k.add(binary.Maximum(node[0], k.like(node[0], 0)))


@rule("Clip")
def clip(k: Building, node: Node) -> Value:
    """Bring numbers outside of two limits to the nearer one; RELU6 and its like where the limits
    are its own.
    """
    x, low, high = node[0], node.get(1), node.get(2)
    low = k.like(x, node.number("min")) if node.has("min") else low
    high = k.like(x, node.number("max")) if node.has("max") else high
    limits = tuple(
        None if v is None or v.data is None else float(v.data.min()) for v in (low, high)
    )
    if x.dtype == TensorType.FLOAT32 and limits in _CLAMPS:
        return k.add(_CLAMPS[limits](x))
    if low is not None:
        x = k.add(binary.Maximum(x, low))
    return x if high is None else k.add(binary.Minimum(x, high))


_CLAMPS: dict[tuple[float | None, ...], type[activations.Clamp]] = {
    cls.limits: cls for cls in (activations.Relu6, activations.ReluN1To1, activations.Relu0To1)
}


@rule("Elu", "Celu", "Selu")
def elu(k: Building, node: Node) -> Value:
    """Compute x above 0 and alpha (e^(x / beta) - 1) below, times gamma: Celu has beta alpha."""
    x = node[0]
    alpha = node.number("alpha", 1.67326319217681884765625 if node.kind == "Selu" else 1.0)
    scaled = x if node.kind != "Celu" else k.add(binary.Div(x, k.like(x, alpha)))
    below = k.add(activations.Elu(scaled))
    if alpha != 1.0:
        below = k.add(binary.Minimum(below, k.like(x, 0)))
        below = k.add(binary.Mul(below, k.like(x, alpha)))
        below = k.add(binary.Add(below, k.add(activations.Relu(x))))
    if node.kind != "Selu":
        return below
    return k.add(binary.Mul(below, k.like(x, node.number("gamma", 1.05070102214813232421875))))


@rule("LeakyRelu")
def leaky_relu(k: Building, node: Node) -> Value:
    """Multiply numbers below 0."""
    return k.add(LeakyRelu(node[0], alpha=node.number("alpha", 0.01)))


@rule("PRelu")
def prelu(k: Building, node: Node) -> Value:
    """Multiply numbers below 0 by a slope of each channel."""
    x, slope = node[0], node[1]
    if node.opset < 7 and len(slope.shape) == 1 and len(x.shape) > 1:
        slope = k.reshape(slope, (*slope.shape, *[1] * (len(x.shape) - 2)))
    if x.dtype == TensorType.FLOAT32 and len(slope.shape) == len(x.shape) - 1:
        return k.add(PRelu(x, slope))
    below = k.add(binary.Mul(k.add(binary.Minimum(x, k.like(x, 0))), slope))
    return k.add(binary.Add(k.add(binary.Maximum(x, k.like(x, 0))), below))


@rule("HardSigmoid")
def hard_sigmoid(k: Building, node: Node) -> Value:
    """Compute max(0, min(1, alpha x + beta))."""
    scaled = k.add(binary.Mul(node[0], k.like(node[0], node.number("alpha", 0.2))))
    moved = k.add(binary.Add(scaled, k.like(node[0], node.number("beta", 0.5))))
    low = k.add(binary.Maximum(moved, k.like(moved, 0)))
    return k.add(binary.Minimum(low, k.like(moved, 1)))


@rule("HardSwish")
def hard_swish(k: Building, node: Node) -> Value:
    """Compute x max(0, min(1, x / 6 + 1 / 2))."""
    return k.add(activations.HardSwish(node[0]))


@rule("Softplus")
def softplus(k: Building, node: Node) -> Value:
    """Compute log(1 + e^x) as max(x, 0) + log(1 + e^-|x|), which does not overflow."""
    x = node[0]
    small = k.add(unary.Exp(k.add(unary.Neg(k.add(unary.Abs(x))))))
    rest = k.add(unary.Log(k.add(binary.Add(small, k.like(x, 1)))))
    return k.add(binary.Add(k.add(binary.Maximum(x, k.like(x, 0))), rest))


@rule("Gelu")
def gelu(k: Building, node: Node) -> Value:
    """Compute x times the share of a normal distribution below x."""
    return k.add(Gelu(node[0], approximate=node.text("approximate", "none") == "tanh"))


@rule("Softmax", "LogSoftmax")
def softmax(k: Building, node: Node) -> Value:
    """Share out along one axis; before version 13 along all axes from that one on."""
    x = node[0]
    rank = len(x.shape)
    axis = k.axis(node.integer("axis", -1 if node.opset >= 13 else 1), x)
    if node.opset < 13 and axis != rank - 1:
        dims = k.dims(x)
        flat = k.reshape(x, (int(np.prod(dims[:axis])), int(np.prod(dims[axis:]))))
        return k.reshape(_shared(k, node.kind, flat), dims)
    order = [i for i in range(rank) if i != axis] + [axis]
    moved = _shared(k, node.kind, k.transpose(x, order))
    return k.transpose(moved, [int(i) for i in np.argsort(order)])


def _shared(k: Building, kind: str, x: Value) -> Value:
    return k.add(Softmax(x, beta=1.0) if kind == "Softmax" else LogSoftmax(x))


@rule("Hardmax")
def hardmax(k: Building, node: Node) -> Value:
    """Put 1 at the first largest element along an axis, 0 elsewhere."""
    x = node[0]
    if node.opset < 13:
        raise RefusedError(f"its version {node.opset} is not done")
    axis = k.axis(node.integer("axis", -1), x)
    depth = k.dims(x)[axis]
    place = k.add(ArgMax(x, k.constant(np.int32(axis)), output_type=TensorType.INT32))
    last = axis == len(x.shape) - 1
    on, off = k.like(x, 1), k.like(x, 0)
    return k.add(OneHot(place, k.constant(np.int32(depth)), on, off, axis=-1 if last else axis))
