"""Operators on quantized tensors, ONNX's and onnxruntime's: dequantized, computed and quantized
again, which becomes one operator on integers.
"""

from __future__ import annotations

from luciole.importers.onnx.building import Building
from luciole.importers.onnx.hybrid_nodes import MICROSOFT
from luciole.importers.onnx.node import Node
from luciole.importers.onnx.operators.convolution import convolved, first, last
from luciole.importers.onnx.operators.matrix import matmul
from luciole.importers.onnx.operators.quantization import (
    dequantize,
    dequantize_linear,
    quantize,
    quantize_linear,
)
from luciole.importers.onnx.rules import Results, rule, standard
from luciole.importers.onnx.windows import windows_of
from luciole.ir import TensorType, Value
from luciole.ir.ops import elementwise_binary as binary
from luciole.ir.ops.concatenation import Concatenation

rule("DequantizeLinear", domain=MICROSOFT)(dequantize_linear)
rule("QuantizeLinear", domain=MICROSOFT)(quantize_linear)


def _real(k: Building, node: Node, slot: int, axis: int = 1) -> Value:
    """Dequantize an operand, behind which its scale and zero point stand."""
    return dequantize(k, node[slot], node[slot + 1], node.get(slot + 2), axis)


def _quantized(k: Building, node: Node, result: Value, slot: int) -> Value:
    """Quantize a result by the scale and zero point in these places; without the latter to the
    type of the first operand.
    """
    point = node.get(slot + 1)
    return quantize(k, result, node[slot], point, node[0].dtype if point is None else point.dtype)


def _bias(k: Building, node: Node, slot: int) -> Value | None:
    """Dequantize a bias of 32 bits, whose steps are the input's times the weights'."""
    bias = node.get(slot)
    if bias is None:
        return None
    steps = k.add(binary.Mul(node[1], node[4]))
    return k.add(binary.Mul(k.cast(bias, TensorType.FLOAT32), steps))


@rule("QLinearConv")
def q_linear_conv(k: Building, node: Node) -> Value:
    """Convolve integers."""
    return _quantized(k, node, _convolved(k, node, _real(k, node, 0)), 6)


@rule("QLinearConv", domain=MICROSOFT)
def q_linear_conv_of_microsoft(k: Building, node: Node) -> Results:
    """Convolve integers, whose channels may come last."""
    if not node.flag("channels_last"):
        return q_linear_conv(k, node)
    image = _convolved(k, node, first(k, _real(k, node, 0)))
    return _quantized(k, node, last(k, image), 6)


def _convolved(k: Building, node: Node, x: Value) -> Value:
    windows = windows_of(node, x.shape, k.dims(node[3])[2:])
    w, groups = _real(k, node, 3, 0), node.integer("group", 1)
    return convolved(k, x, w, _bias(k, node, 8), windows, groups)


@rule("QLinearMatMul")
def q_linear_matmul(k: Building, node: Node) -> Value:
    """Multiply matrices of integers."""
    return _quantized(k, node, matmul(k, _real(k, node, 0, -2), _real(k, node, 3, -1)), 6)


@rule("QGemm", domain=MICROSOFT)
def q_gemm(k: Building, node: Node) -> Value:
    """Multiply by a matrix and add: its result may be floats."""
    w = _real(k, node, 3, 0 if node.flag("transB") else 1)
    operands = [_real(k, node, 0), w, _bias(k, node, 6)]
    product = standard(k, "Gemm", operands, node.attributes)
    return product if node.get(7) is None else _quantized(k, node, product, 7)


@rule("QLinearAdd", "QLinearMul", domain=MICROSOFT)
def q_linear_binary(k: Building, node: Node) -> Value:
    """Add or multiply integers."""
    cls = binary.Add if node.kind == "QLinearAdd" else binary.Mul
    return _quantized(k, node, k.add(cls(_real(k, node, 0), _real(k, node, 3))), 6)


@rule("QLinearConcat", domain=MICROSOFT)
def q_linear_concat(k: Building, node: Node) -> Value:
    """Put integers behind each other along an axis."""
    parts = tuple(_real(k, node, slot) for slot in range(2, len(node.operands), 3))
    whole = k.add(Concatenation(parts, axis=k.axis(node.integer("axis"), parts[0])))
    return quantize(k, whole, node[0], node[1], node[1].dtype)


@rule("QLinearWhere", domain=MICROSOFT)
def q_linear_where(k: Building, node: Node) -> Value:
    """Choose integers by a condition."""
    operands = [node[0], _real(k, node, 1), _real(k, node, 4)]
    return quantize(k, standard(k, "Where", operands), node[7], node[8], node[8].dtype)


@rule("QLinearGlobalAveragePool", domain=MICROSOFT)
def q_linear_mean(k: Building, node: Node) -> Value:
    """Compute the means of images of integers."""
    x, turned = _real(k, node, 0), node.flag("channels_last")
    places = range(1, len(x.shape) - 1) if turned else range(2, len(x.shape))
    return _quantized(k, node, standard(k, "ReduceMean", [x], {"axes": list(places)}, 13), 3)


@rule("QLinearReduceMean", domain=MICROSOFT)
def q_linear_reduce_mean(k: Building, node: Node) -> Value:
    """Compute means of integers along axes."""
    return _quantized(
        k, node, standard(k, "ReduceMean", [_real(k, node, 0)], node.attributes, 13), 3
    )


@rule("QLinearAveragePool", domain=MICROSOFT)
def q_linear_average_pool(k: Building, node: Node) -> Value:
    """Compute the means of windows of integers."""
    x, turned = _real(k, node, 0), node.flag("channels_last")
    pooled = standard(k, "AveragePool", [first(k, x) if turned else x], node.attributes)
    return _quantized(k, node, last(k, pooled) if turned else pooled, 3)


@rule("QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax", domain=MICROSOFT)
def q_linear_unary(k: Building, node: Node) -> Value:
    """Apply a function to integers."""
    attributes = {name: value for name, value in node.attributes.items() if name != "opset"}
    kind, opset = node.kind.removeprefix("QLinear"), node.integer("opset", 21)
    return _quantized(k, node, standard(k, kind, [_real(k, node, 0)], attributes, opset), 3)


@rule("NhwcMaxPool", domain=MICROSOFT)
def nhwc_max_pool(k: Building, node: Node) -> Value:
    """Pool images of integers whose channels come last."""
    return last(k, standard(k, "MaxPool", [first(k, node[0])], node.attributes))
