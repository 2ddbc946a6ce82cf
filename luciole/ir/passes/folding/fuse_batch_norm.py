"""Fold a per-channel multiplication and addition into the layer before it."""

from __future__ import annotations

import numpy as np

from luciole.ir.dtypes import Array
from luciole.ir.graph import Graph
from luciole.ir.op import Op
from luciole.ir.value import Value
from luciole.schema.enums import (
    ActivationFunctionType,
    BuiltinOperator,
    FullyConnectedOptionsWeightsFormat,
    TensorType,
)

_LAYERS = (
    BuiltinOperator.CONV_2D,
    BuiltinOperator.DEPTHWISE_CONV_2D,
    BuiltinOperator.FULLY_CONNECTED,
)
_NONE = ActivationFunctionType.NONE
_PLAIN = FullyConnectedOptionsWeightsFormat.DEFAULT


def fuse_batch_norm(graph: Graph) -> bool:
    """ADD(MUL(CONV_2D(x, w, b), m), a) -> CONV_2D(x, w m, b m + a): likewise depthwise and dense.

    The constants have one number for each channel, and nothing else sees the layer's result. An
    inference-time batch normalization is a MUL followed by an ADD: two rounds fuse it. Rounding
    differs as float32 multiplication does, because weights are scaled before they are summed.
    """
    changes = [_fuse(graph, op) for op in list(graph.ops)]
    return any(changes)


def fuse_biases(graph: Graph) -> bool:
    """Fuse ADD by one constant per channel into the layer before that has no bias, where nothing
    else sees its result.
    """
    adds = [op for op in graph.ops if getattr(op, "code", None) == BuiltinOperator.ADD]
    changes = [_fuse(graph, op) for op in adds if _bias_is_free(op)]
    return any(changes)


def _bias_is_free(op: Op) -> bool:
    found = layer_and_factor(op)
    return found is not None and (*found[0].operands, None)[2] is None


def _fuse(graph: Graph, op: Op) -> bool:
    if op.graph is None or getattr(op, "code", None) not in (
        BuiltinOperator.MUL,
        BuiltinOperator.ADD,
    ):
        return False
    found = layer_and_factor(op)
    if found is None:
        return False
    layer, factor = found
    if op.code == BuiltinOperator.MUL:
        _scale(graph, layer, factor)
    else:
        _shift(graph, layer, op, factor)
    layer.activation = op.attributes()["activation"]  # type: ignore[attr-defined]  # every layer has one
    name = op.output.name
    op.output.replace_with(layer.output)
    graph.remove(op)
    layer.output.name = name
    return True


def layer_and_factor(op: Op) -> tuple[Op, Array] | None:
    """Find the layer that makes one operand, and the constant per channel that is the other."""
    for value, other in (op.operands[:2], op.operands[1::-1]):
        layer = value.producer.op if value is not None and value.producer is not None else None
        if layer is None or getattr(layer, "code", None) not in _LAYERS or not _is_plain(layer):
            continue
        factor = per_channel(other, layer)
        if factor is not None and op.output.shape == layer.output.shape:
            return layer, factor
    return None


def _is_plain(layer: Op) -> bool:
    """Tell whether it is float, constant, in plain order, without activation, and only this one
    user.
    """
    attributes = layer.attributes()
    _, weights, bias = (*layer.operands, None)[:3]
    constant = (
        weights is not None and weights.data is not None and weights.dtype == TensorType.FLOAT32
    )
    if bias is not None and bias.data is None:
        return False
    if attributes.get("weights_format", _PLAIN) != _PLAIN:
        return False
    alone = len(layer.output.users) == 1 and not layer.output.is_output
    return constant and alone and bool(attributes["activation"] == _NONE)


def per_channel(value: Value | None, layer: Op) -> Array | None:
    """Read a constant with one number for each channel of a layer's result, or for all; None where
    it is none.
    """
    data = value.data if value is not None else None
    if data is None or data.dtype != np.float32:
        return None
    channels = layer.output.shape[-1]
    if channels is None:
        return None
    if data.size not in (1, channels) or (data.size > 1 and data.shape[-1] != channels):
        return None
    return np.broadcast_to(data.reshape(-1), (channels,))


def _scale(graph: Graph, layer: Op, factor: Array) -> None:
    weights, bias = layer.operands[1], (*layer.operands, None)[2]
    data = weights.data if weights is not None else None
    if weights is None or data is None or layer.quant is None:
        return
    shape = [1] * data.ndim
    shape[layer.quant.axis] = -1
    layer.set_operand(1, _like(graph, weights, data * factor.reshape(shape)))
    if bias is not None and bias.data is not None:
        layer.set_operand(2, _like(graph, bias, bias.data * factor))


def _shift(graph: Graph, layer: Op, op: Op, factor: Array) -> None:
    bias = (*layer.operands, None)[2]
    given = next((v for v in op.operands if v is not None and v is not layer.output), None)
    if bias is not None and bias.data is not None:
        layer.set_operand(2, _like(graph, bias, bias.data + factor))
    elif given is not None and given.shape == factor.shape:
        layer.set_operand(2, given)
    else:
        name = graph.unique_name(f"{layer.name}/bias")
        layer.set_operand(2, graph.add_constant(name, np.ascontiguousarray(factor)))


def _like(graph: Graph, old: Value, data: Array) -> Value:
    """Make a new constant in place of an old one, which keeps its contents for whoever else uses
    it.
    """
    return graph.add_constant(graph.unique_name(f"{old.name}/fused"), np.asarray(data, np.float32))
