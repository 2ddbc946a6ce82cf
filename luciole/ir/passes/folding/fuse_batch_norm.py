"""Fold a per-channel multiplication and addition into the layer before it."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.elementwise_binary import Add, Mul
from luciole.ir.rewriting.scaling import PLAIN_LAYERS, bias_of, fuse_into_layer, layer_and_factor


def fuse_batch_norm(graph: Graph) -> bool:
    """ADD(MUL(CONV_2D(x, w, b), m), a) -> CONV_2D(x, w m, b m + a): likewise depthwise and dense.

    The constants have one number for each channel, and nothing else sees the layer's result. An
    inference-time batch normalization is a MUL followed by an ADD: two rounds fuse it. Rounding
    differs as float32 multiplication does, because weights are scaled before they are summed.
    """
    ops = [op for op in graph.ops if isinstance(op, Mul | Add)]
    changes = [fuse_into_layer(graph, op, PLAIN_LAYERS) for op in ops]
    return any(changes)


def fuse_biases(graph: Graph) -> bool:
    """Fuse ADD by one constant per channel into the layer before that has no bias, where nothing
    else sees its result.
    """
    adds = [op for op in graph.ops if isinstance(op, Add)]
    changes = [_bias_is_free(op) and fuse_into_layer(graph, op, PLAIN_LAYERS) for op in adds]
    return any(changes)


def _bias_is_free(op: Add) -> bool:
    pair = layer_and_factor(op)
    return pair is not None and bias_of(pair[0]) is None
