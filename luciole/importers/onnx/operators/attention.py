"""Attention as onnxruntime's optimizer puts it together, without keys and values of other runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from luciole.importers.onnx.building import Building
from luciole.importers.onnx.errors import RefusedError
from luciole.importers.onnx.hybrid_nodes import MICROSOFT, OURS
from luciole.importers.onnx.node import Node
from luciole.importers.onnx.operators.hybrid import Weights, hybrid
from luciole.importers.onnx.operators.matrix import matmul
from luciole.importers.onnx.operators.quantization import dequantize
from luciole.importers.onnx.operators.shape import with_axes
from luciole.importers.onnx.rules import rule, standard
from luciole.ir import TensorType, Value
from luciole.ir.ops import elementwise_binary as binary

_MASKED = -10000.0
"""What onnxruntime adds to scores that are masked, where a file says nothing else."""


@dataclass(frozen=True)
class Masks:
    """What is added to scores [batch, heads, queries, keys] before they are shared out."""

    padding: Value | None
    """1 for keys that count, [batch, keys] or [batch, queries, keys]; or their count, [batch]."""
    bias: Value | None
    causal: bool


@rule("Attention", domain=MICROSOFT)
def attention(k: Building, node: Node) -> Value:
    """Attend to words by one matrix that makes queries, keys and values of each."""
    node.alone()
    product = matmul(k, node[0], node[1])
    _refuse_past(node, (4, 6))
    return _of_one(k, node, product, node.get(2), (node.get(3), node.get(5)))


@rule("QAttention", domain=MICROSOFT)
def q_attention(k: Building, node: Node) -> Value:
    """Do the same with integers, whose sums are floats."""
    node.alone()
    x = dequantize(k, node[0], node[3], node.get(6))
    product = matmul(k, x, dequantize(k, node[1], node[4], node.get(7), -1))
    _refuse_past(node, (8,))
    return _of_one(k, node, product, node[2], (node.get(5), None))


@rule("DynamicQuantizeAttention", domain=OURS)
def dynamic_attention(k: Building, node: Node) -> Value:
    """Do the same with words that are quantized when the model runs: [words, weights, bias, scale,
    mask, zero point].
    """
    node.alone()
    x = node[0]
    weights = Weights.read(k, node[1], node[3], node.get(5), -1)
    ones = np.ones((*weights.codes.shape[:-1], 1))
    product = hybrid(k, weights, lambda w: matmul(k, x, w), ones, -1)
    return _of_one(k, node, product, node[2], (node.get(4), None))


def _refuse_past(node: Node, slots: tuple[int, ...]) -> None:
    if any(node.get(slot) is not None for slot in slots) or node.flag("do_rotary"):
        raise RefusedError("it turns words by their places or reads those of earlier runs")


def _of_one(
    k: Building,
    node: Node,
    product: Value,
    bias: Value | None,
    masks: tuple[Value | None, Value | None],
) -> Value:
    """Cut queries, keys and values apart, and attend."""
    product = product if bias is None else k.add(binary.Add(product, bias))
    last = product.shape[-1] or 0
    sizes = node.integers("qkv_hidden_sizes", [last // 3] * 3)
    if sum(sizes) != last:
        raise RefusedError(f"{last} numbers are no queries, keys and values of {sizes}")
    parts = _split(k, product, sizes)
    return _attend(k, node, parts, Masks(*masks, node.flag("unidirectional")))


def _split(k: Building, value: Value, sizes: list[int]) -> list[Value]:
    from luciole.ir.ops.split_v import SplitV

    axis = k.constant(np.int32(len(value.shape) - 1))
    return k.several(SplitV(value, k.int32(sizes), axis, num_splits=len(sizes)))


@rule("MultiHeadAttention", domain=MICROSOFT)
def multi_head_attention(k: Building, node: Node) -> Value:
    """Attend with queries, keys and values [batch, words, numbers] that other nodes make."""
    node.alone()
    _refuse_past(node, (6, 7, 8, 9))
    parts = [node[slot] for slot in range(3)]
    if any(len(part.shape) != 3 for part in parts):
        raise RefusedError("its queries, keys or values stand together")
    bias = node.get(3)
    if bias is not None:
        biases = _split(k, bias, [part.shape[-1] or 0 for part in parts])
        parts = [k.add(binary.Add(p, b)) for p, b in zip(parts, biases, strict=True)]
    masks = Masks(node.get(4), node.get(5), node.flag("unidirectional"))
    return _attend(k, node, parts, masks)


def _attend(k: Building, node: Node, parts: list[Value], masks: Masks) -> Value:
    """Share the values out by how well keys fit queries: softmax(Q K^T scale + masks) V for each
    head (Vaswani et al. 2017, "Attention Is All You Need", equation 1).
    """
    heads = node.integer("num_heads")
    size = (parts[0].shape[-1] or 0) // max(1, heads)
    if size < 1:
        raise RefusedError(f"{parts[0].shape[-1]} numbers are not shared by {heads} heads")
    queries, keys, values = (_by_head(k, part, heads) for part in parts)
    scale = node.number("scale", 0.0) or size**-0.5
    scores = matmul(k, queries, k.transpose(keys, (0, 1, 3, 2)))
    scores = k.add(binary.Mul(scores, k.like(scores, scale)))
    for term in _terms(k, node.number("mask_filter_value", _MASKED), masks, scores):
        scores = k.add(binary.Add(scores, term))
    mixed = matmul(k, standard(k, "Softmax", [scores], {"axis": -1}), values)
    wide = k.constant(np.array([0, 0, parts[2].shape[-1] or 0], np.int64))
    return standard(k, "Reshape", [k.transpose(mixed, (0, 2, 1, 3)), wide])


def _by_head(k: Building, part: Value, heads: int) -> Value:
    """Bring [batch, words, numbers] to [batch, heads, words, numbers of a head]."""
    size = (part.shape[-1] or 0) // heads
    shape = k.constant(np.array([0, 0, heads, size], np.int64))
    return k.transpose(standard(k, "Reshape", [part, shape]), (0, 2, 1, 3))


def _terms(k: Building, masked: float, masks: Masks, scores: Value) -> list[Value]:
    """List the terms of scores that are no products."""
    terms = [] if masks.bias is None else [masks.bias]
    if masks.causal:
        rows, columns = k.dims(scores)[-2:]
        later = np.triu(np.ones((rows, columns)), columns - rows + 1)
        terms.append(k.constant((later * np.finfo(np.float32).min).astype(np.float32)))
    if masks.padding is not None:
        counts = _counting(k, masks.padding, scores)
        absent = k.add(binary.Sub(k.like(counts, 1), counts))
        terms.append(k.add(binary.Mul(absent, k.like(counts, masked))))
    return terms


def _counting(k: Building, padding: Value, scores: Value) -> Value:
    """Return 1 for keys that count and 0 for others, [batch, 1, 1 or queries, keys]."""
    if len(padding.shape) == 1:
        batch, *_, keys = k.dims(scores)
        if padding.shape != (batch,):
            raise RefusedError("its mask says where words begin")
        places = k.constant(np.arange(keys, dtype=np.int32)[None])
        padding = standard(k, "Less", [places, k.reshape(padding, (batch, 1))])
    counts = k.cast(padding, TensorType.FLOAT32)
    counts = k.add(binary.Minimum(counts, k.like(counts, 1)))
    if len(padding.shape) == 4:
        raise RefusedError("its mask has four axes")
    return with_axes(k, counts, [1, 2] if len(padding.shape) == 2 else [1])
