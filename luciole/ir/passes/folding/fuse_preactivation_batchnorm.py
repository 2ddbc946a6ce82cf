"""Fold a batch normalization in front of an activation into the layers around it."""

from __future__ import annotations

from luciole.ir.dtypes import Array
from luciole.ir.graph import Graph
from luciole.ir.op import Op
from luciole.ir.ops.activations import Relu
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.elementwise_binary import Add, Mul
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.rewriting.edits import become, is_private
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.patterns import is_plain, made_by
from luciole.ir.rewriting.scaling import (
    PLAIN_LAYERS,
    fuse_into_layer,
    is_plain_layer,
    per_channel,
    set_weights,
    shift_layer,
    weights_of_layer,
)
from luciole.ir.value import Value
from luciole.schema.enums import ActivationFunctionType


@rewrite(Add)
def fuse_preactivation_batchnorm(graph: Graph, op: Add) -> bool:
    """CONV_2D(RELU(ADD(MUL(x, m), a)), w) -> CONV_2D(RELU(x + a / m), w m): x + a / m in a bias.

    m is above 0: RELU(m x + a) is m RELU(x + a / m). The layer that x comes from adds a / m, and
    what is added to x elsewhere, around the layers of a residual network, takes it away again (He
    et al. 2016, "Identity Mappings in Deep Residual Networks", figure 1b).
    """
    mul = next((m for v in (op.x, op.y) if (m := made_by(v, Mul)) is not None), None)
    if mul is None or not is_plain(mul) or not is_private(mul.output):
        return False
    x = mul.x if mul.y.is_constant else mul.y
    layer, others = _source(x), [use.op for use in x.users if use.op is not mul]
    readers = [use.op for use in op.output.users]
    balances = [_balance(other, x) for other in others]
    if layer is None or op.activation != ActivationFunctionType.RELU or op.output.is_output:
        return False
    factor = per_channel(mul.y if mul.y.is_constant else mul.x, layer)
    shift = per_channel(op.y if op.x is mul.output else op.x, layer)
    if factor is None or shift is None or x.is_output:
        return False
    if not others:
        return _fold_alone(graph, op, mul, layer)
    if not (factor >= _LEAST).all():
        return False
    if None in balances or not all(_takes(reader, op.output, len(factor)) for reader in readers):
        return False
    _move(graph, layer, [b for b in balances if b is not None], shift / factor)
    for reader in readers:
        _scale(graph, reader, factor)
    become(graph, op, Relu(x))
    return True


_LEAST = 1e-2
"""Of a factor that is divided by: what is added and taken away is not to drown the numbers."""


def _fold_alone(graph: Graph, op: Add, mul: Mul, layer: Op) -> bool:
    """Fold everything into the layer before, which nothing else reads; RELU stays an operator."""
    if not fuse_into_layer(graph, mul, PLAIN_LAYERS):
        return False
    shift = per_channel(op.y if op.x is layer.output else op.x, layer)
    assert shift is not None, "it was looked at"
    shift_layer(graph, layer, shift)
    become(graph, op, Relu(layer.output))
    return True


def _source(x: Value) -> Op | None:
    """Find the layer whose bias is added to x, perhaps in the sum that x is."""
    op = x.producer.op if x.producer is not None else None
    if isinstance(op, Add) and is_plain(op):
        return next((one for v in (op.x, op.y) if (one := _private_layer(v)) is not None), None)
    plain = op is not None and isinstance(op, PLAIN_LAYERS) and is_plain_layer(op) and is_plain(op)
    return op if plain else None


def _private_layer(value: Value) -> Op | None:
    op = value.producer.op if value.producer is not None else None
    plain = op is not None and isinstance(op, PLAIN_LAYERS) and is_plain_layer(op) and is_plain(op)
    return op if plain and is_private(value) else None


def _balance(other: Op, x: Value) -> Op | None:
    """Find the layer whose result is added to x, and can take away what x has too much."""
    if not isinstance(other, Add) or other.x is other.y or other.output.shape != x.shape:
        return None
    beside = other.y if other.x is x else other.x
    return _private_layer(beside) if beside.shape == x.shape else None


def _takes(reader: Op, value: Value, channels: int) -> bool:
    """Return whether a reader is a layer whose weights can be scaled by the channels of a value."""
    weights = weights_of_layer(reader) if isinstance(reader, Conv2D | FullyConnected) else None
    if weights is None or reader.operands[0] is not value or not is_plain_layer(reader):
        return False
    return weights.dims[-1] == channels


def _move(graph: Graph, layer: Op, balances: list[Op], shift: Array) -> None:
    shift_layer(graph, layer, shift)
    for balance in balances:
        shift_layer(graph, balance, -shift)


def _scale(graph: Graph, reader: Op, factor: Array) -> None:
    weights = weights_of_layer(reader)
    assert weights is not None, "it was looked at"
    assert weights.data is not None, "it is constant"
    set_weights(graph, reader, weights.data * factor)
