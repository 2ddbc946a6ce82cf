"""Operators that onnxruntime's optimizer puts together of ONNX's."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from luciole.importers.onnx.building import Building
from luciole.importers.onnx.errors import RefusedError
from luciole.importers.onnx.hybrid_nodes import MICROSOFT
from luciole.importers.onnx.node import Node
from luciole.importers.onnx.operators.matrix import matmul
from luciole.importers.onnx.operators.quantization import dequantize
from luciole.importers.onnx.operators.shape import extents
from luciole.importers.onnx.rules import Results, rule, standard
from luciole.ir import TensorType, Value
from luciole.ir.ops import elementwise_binary as binary
from luciole.ir.ops.activations import Logistic

_EPSILON = 1e-12
"""What onnxruntime adds to variances where a file says nothing else."""


@rule("Gelu", "BiasGelu", "FastGelu", domain=MICROSOFT)
def gelu(k: Building, node: Node) -> Value:
    """Compute GELU of x, or of x and a bias."""
    bias = node.get(1)
    x = node[0] if bias is None else k.add(binary.Add(node[0], bias))
    approximate = "tanh" if node.kind == "FastGelu" else "none"
    return standard(k, "Gelu", [x], {"approximate": approximate})


@rule("QuickGelu", domain=MICROSOFT)
def quick_gelu(k: Building, node: Node) -> Value:
    """Compute x times the logistic function of alpha x."""
    x, alpha = node[0], node.number("alpha", 1.702)
    steep = x if alpha == 1.0 else k.add(binary.Mul(x, k.like(x, alpha)))
    return k.add(binary.Mul(x, k.add(Logistic(steep))))


@rule("BiasAdd", domain=MICROSOFT)
def bias_add(k: Building, node: Node) -> Value:
    """Add two terms."""
    return k.joined(binary.Add, [node[slot] for slot in range(3)])


@rule("FusedMatMul", "TransposeMatMul", domain=MICROSOFT)
def fused_matmul(k: Building, node: Node) -> Value:
    """Multiply matrices, the last two axes of each exchanged or not, and by a number."""
    if node.flag("transBatchA") or node.flag("transBatchB"):
        raise RefusedError("it moves the axes of stacks")
    x, y = (_turned(k, node[i], node.flag(name)) for i, name in enumerate(("transA", "transB")))
    product, alpha = matmul(k, x, y), node.number("alpha", 1.0)
    return product if alpha == 1.0 else k.add(binary.Mul(product, k.like(product, alpha)))


def _turned(k: Building, x: Value, turns: bool) -> Value:
    rank = len(x.shape)
    return k.transpose(x, (*range(rank - 2), rank - 1, rank - 2)) if turns and rank > 1 else x


@rule("FusedConv", domain=MICROSOFT)
def fused_conv(k: Building, node: Node) -> Value:
    """Convolve, add an image and apply a function."""
    result, image = standard(k, "Conv", node.operands[:3], node.attributes), node.get(3)
    result = result if image is None else k.add(binary.Add(result, image))
    numbers = node.numbers("activation_params", [])
    kind = node.text("activation", "")
    if kind == "Clip":
        return standard(k, "Clip", [result], dict(zip(("min", "max"), numbers, strict=True)), 6)
    return _activated(k, kind, result, dict(zip(("alpha", "beta"), numbers, strict=False)))


@rule("FusedGemm", domain=MICROSOFT)
def fused_gemm(k: Building, node: Node) -> Value:
    """Multiply by a matrix, add and apply a function."""
    numbers = {
        name: node.number(f"activation_{name}")
        for name in ("alpha", "beta")
        if node.has(f"activation_{name}")
    }
    product = standard(k, "Gemm", node.operands, node.attributes)
    return _activated(k, node.text("activation", ""), product, numbers)


def _activated(k: Building, kind: str, x: Value, numbers: Mapping[str, float]) -> Value:
    if kind not in ("", "Relu", "Tanh", "Sigmoid", "LeakyRelu", "HardSigmoid"):
        raise RefusedError(f"its function {kind} is not done")
    return standard(k, kind, [x], numbers) if kind else x


@rule("SkipLayerNormalization", domain=MICROSOFT)
def skip_layer_normalization(k: Building, node: Node) -> Results:
    """Normalize a sum: the result, nothing, nothing, and the sum."""
    whole = _sum(k, [node[0], node[1], node.get(4)])
    operands = [whole, node[2], node.get(3)]
    epsilon = node.number("epsilon", _EPSILON)
    return [standard(k, "LayerNormalization", operands, {"epsilon": epsilon}), None, None, whole]


@rule("SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def skip_rms_normalization(k: Building, node: Node) -> Results:
    """Divide a sum by the root of the mean of its squares: the result, nothing, nothing, the
    sum.
    """
    whole = _sum(k, [node[0], node[1], node.get(3)])
    return [_by_root(k, whole, node[2], node.number("epsilon", _EPSILON)), None, None, whole]


@rule("SimplifiedLayerNormalization")
def rms_normalization(k: Building, node: Node) -> Value:
    """Divide by the root of the mean of squares along the last axis."""
    node.alone()
    if k.axis(node.integer("axis", -1), node[0]) != len(node[0].shape) - 1:
        raise RefusedError("it normalizes several axes")
    return _by_root(k, node[0], node[1], node.number("epsilon", 1e-5))


def _by_root(k: Building, x: Value, scale: Value, epsilon: float) -> Value:
    squares = standard(k, "ReduceMean", [k.add(binary.Mul(x, x))], {"axes": [len(x.shape) - 1]}, 13)
    root = standard(k, "Sqrt", [k.add(binary.Add(squares, k.like(x, epsilon)))])
    return k.add(binary.Mul(k.add(binary.Div(x, root)), scale))


def _sum(k: Building, terms: list[Value | None]) -> Value:
    return k.joined(binary.Add, [term for term in terms if term is not None])


@rule("EmbedLayerNormalization", domain=MICROSOFT)
def embed_layer_normalization(k: Building, node: Node) -> Results:
    """Normalize the sum of embeddings of words, places and segments: the result, how many words
    are not masked, and the sum.
    """
    ids, segments, places = node[0], node.get(1), node.get(8)
    parts = [standard(k, "Gather", [node[2], ids])]
    if places is None:
        ends = extents(k, ids, 1, 2)
        places = standard(k, "Range", [k.like(ends, [0]), ends, k.like(ends, [1])])
    parts.append(standard(k, "Gather", [node[3], places]))
    if segments is not None:
        parts.append(standard(k, "Gather", [node[4], segments]))
    whole = _sum(k, [*parts])
    epsilon = node.number("epsilon", _EPSILON)
    result = standard(k, "LayerNormalization", [whole, node[5], node[6]], {"epsilon": epsilon})
    return [result, _lengths(k, node), whole]


def _lengths(k: Building, node: Node) -> Value | None:
    """Count the words of each record that are not masked."""
    if not node.has_result(1):
        return None
    mask, axes = node.get(7), k.constant(np.array([1], np.int64))
    if mask is None:  # onnxruntime then counts none
        mask = k.add(binary.Mul(node[0], k.like(node[0], 0)))
    counts = standard(k, "ReduceSum", [k.cast(mask, TensorType.INT32), axes], {"keepdims": 0})
    return k.cast(counts, TensorType.INT32)


@rule("QEmbedLayerNormalization", domain=MICROSOFT)
def q_embed_layer_normalization(k: Building, node: Node) -> Results:
    """Do the same with tables of integers, whose scales are operands 8 to 12, and zero points 13 to
    17.
    """
    slots = (2, 3, 4, 5, 6)
    operands = list(node.operands[:8])
    for place, slot in enumerate(slots):
        if node.get(slot) is not None:
            operands[slot] = dequantize(k, node[slot], node[8 + place], node.get(13 + place))
    inner = Node(node.kind, node.opset, operands, node.outputs, node.attributes)
    return embed_layer_normalization(k, inner)
