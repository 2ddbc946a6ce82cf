"""Scale and shift layers: constants per channel behind them, and in front of them."""

from __future__ import annotations

import numpy as np

from luciole.ir.dtypes import Array
from luciole.ir.graph import Graph
from luciole.ir.op import Op
from luciole.ir.ops.activations import FUSED
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.elementwise_binary import Add, Mul
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.transpose_conv import TransposeConv
from luciole.ir.value import Value
from luciole.schema.enums import (
    ActivationFunctionType,
    FullyConnectedOptionsWeightsFormat,
    TensorType,
)

Layers = tuple[type[Op], ...]
PLAIN_LAYERS: Layers = (Conv2D, DepthwiseConv2D, FullyConnected)

_NONE = ActivationFunctionType.NONE
_PLAIN = FullyConnectedOptionsWeightsFormat.DEFAULT
_WITH_BIAS = 3
"""The first version of TRANSPOSE_CONV with a bias."""


def fuse_into_layer(graph: Graph, op: Mul | Add, layers: Layers) -> bool:
    """Fold a multiplication or an addition by one constant per channel into the layer of some kind
    before it, where nothing else sees its result.
    """
    pair = layer_and_factor(op, layers)
    if pair is None:
        return False
    layer, factor = pair
    if isinstance(op, Mul):
        scale_layer(graph, layer, factor)
    else:
        _shift(graph, layer, op, factor)
    _take_over(graph, layer, op)
    return True


def layer_and_factor(op: Op, layers: Layers = PLAIN_LAYERS) -> tuple[Op, Array] | None:
    """Find the layer that makes one operand, and the constant per channel that is the other: it is
    added to layers with any weights, and multiplies float ones.
    """
    for value, other in (op.operands[:2], op.operands[1::-1]):
        layer = value.producer.op if value is not None and value.producer is not None else None
        if layer is None or not isinstance(layer, layers) or not _is_alone(layer):
            continue
        if not (is_plain_layer(layer) or (isinstance(op, Add) and takes_bias(layer))):
            continue
        factor = per_channel(other, layer)
        if factor is not None and op.output.shape == layer.output.shape:
            return layer, factor
    return None


def _is_alone(layer: Op) -> bool:
    """Return whether a layer has no activation, and its result only one user."""
    alone = len(layer.output.users) == 1 and not layer.output.is_output
    return alone and bool(layer.attributes()["activation"] == _NONE)


def is_plain_layer(layer: Op) -> bool:
    """Return whether weights are float constants in plain order, and the bias is constant."""
    weights, bias = weights_of_layer(layer), bias_of(layer)
    if weights is None or weights.data is None or weights.dtype != TensorType.FLOAT32:
        return False
    if bias is not None and bias.data is None:
        return False
    return bool(layer.attributes().get("weights_format", _PLAIN) == _PLAIN)


def takes_bias(layer: Op) -> bool:
    """Return whether a layer's result is floats, and its bias, unless it has none, constant ones:
    its weights may be integers.
    """
    bias = bias_of(layer)
    floats = bias is None or (bias.data is not None and bias.dtype == TensorType.FLOAT32)
    return (
        floats and layer.output.dtype == TensorType.FLOAT32 and weights_of_layer(layer) is not None
    )


def weights_of_layer(layer: Op) -> Value | None:
    """Return the operand that is a layer's weights."""
    return layer.operands[slot_of(layer, layer.quant.weight)] if layer.quant is not None else None


def bias_of(layer: Op) -> Value | None:
    """Return the operand that is a layer's bias, None where it has none."""
    slot = slot_of(layer, layer.quant.bias) if layer.quant is not None else len(layer.operands)
    return layer.operands[slot] if slot < len(layer.operands) else None


def slot_of(layer: Op, name: str | None) -> int:
    """Find the place of an operand by its name."""
    return [field.name for field in layer.operand_fields()].index(name or "")


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


def scale_layer(graph: Graph, layer: Op, factor: Array) -> None:
    """Multiply the weights and the bias of a layer by a number for each output."""
    weights, bias = weights_of_layer(layer), bias_of(layer)
    data = weights.data if weights is not None else None
    if weights is None or data is None or layer.quant is None:
        return
    shape = [1] * data.ndim
    shape[layer.quant.axis] = -1
    set_weights(graph, layer, data * factor.reshape(shape))
    if bias is not None and bias.data is not None:
        slot = slot_of(layer, layer.quant.bias)
        layer.set_operand(slot, _like(graph, bias, bias.data * factor.reshape(bias.dims)))


def set_weights(graph: Graph, layer: Op, data: Array) -> None:
    """Give a layer a constant with other weights; the old one stays for whoever else reads it."""
    weights = weights_of_layer(layer)
    assert weights is not None, "only layers with weights come here"
    assert layer.quant is not None, "a layer says which operand its weights are"
    layer.set_operand(slot_of(layer, layer.quant.weight), _like(graph, weights, data))


def shift_layer(graph: Graph, layer: Op, shift: Array, constant: Value | None = None) -> None:
    """Add a number for each output to a layer's bias; one that it has not becomes the
    ``constant``, or a new one.
    """
    bias = bias_of(layer)
    assert layer.quant is not None, "a layer says which operand its bias is"
    slot = slot_of(layer, layer.quant.bias)
    if bias is not None and bias.data is not None:
        layer.set_operand(slot, _like(graph, bias, bias.data + shift.reshape(bias.dims)))
    elif constant is not None:
        layer.set_operand(slot, constant)
    else:
        name = graph.unique_name(f"{layer.name}/bias")
        layer.set_operand(slot, graph.add_constant(name, np.ascontiguousarray(shift, np.float32)))
    if isinstance(layer, TransposeConv):
        layer.version = max(layer.version, _WITH_BIAS)


def _shift(graph: Graph, layer: Op, op: Op, factor: Array) -> None:
    other = next((v for v in op.operands if v is not None and v is not layer.output), None)
    fits = other is not None and other.shape == factor.shape
    shift_layer(graph, layer, factor, other if fits else None)


def _take_over(graph: Graph, layer: Op, op: Op) -> None:
    """Replace an operator by the layer before it, or an activation behind that."""
    activation, name, result = op.attributes()["activation"], op.output.name, layer.output
    if not isinstance(layer, TransposeConv):  # of whose versions only the last has one
        layer.activation = activation  # type: ignore[attr-defined]  # every layer has one
    elif activation != _NONE:
        unit = FUSED[activation](result)
        result = graph.insert_before(op, unit, graph.unique_name(f"{name}/unit")).output
    op.output.replace_with(result)
    graph.remove(op)
    result.name = name


def _like(graph: Graph, old: Value, data: Array) -> Value:
    """Make a new constant in place of an old one, which keeps its contents for whoever else uses
    it.
    """
    return graph.add_constant(graph.unique_name(f"{old.name}/fused"), np.asarray(data, np.float32))
