"""LQ_FULLY_CONNECTED kernels: a reference on dequantized values, xnor/popcount on packed bits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from luciole.ir import Array, TensorType, learned_levels
from luciole.ir.ops.lq_fully_connected import LQFullyConnected
from luciole.kernels.arrays.fused_activation import activate
from luciole.kernels.core.contract import Context, NativeStep
from luciole.kernels.core.registry import native, reference
from luciole.kernels.layers.levels import counting
from luciole.kernels.layers.levels.even_layer import dense_step
from luciole.kernels.layers.levels.layer import LevelsLayer, Operands, or_zero
from luciole.kernels.portable.calls import CCall, PortableContext, portable
from luciole.kernels.portable.floats import activated
from luciole.kernels.portable.levels import layer_calls


@reference(LQFullyConnected, TensorType.FLOAT32)
def lq_fully_connected(
    op: LQFullyConnected,
    x: Array,
    input_scales: Array,
    weights_scales: Array,
    weights_binary: Array,
    bias: Array | None,
    weights_offsets: Array | None,
) -> Array:
    """Quantize the input, dequantize the weights, multiply: in float64, so that it can judge the
    other.
    """
    levels, _ = learned_levels.levels(input_scales, op.input_offset)
    quantized = levels[learned_levels.encode(x, learned_levels.thresholds(levels))]
    weights = learned_levels.decode(
        weights_binary, weights_scales, op.hidden_size, or_zero(weights_offsets)
    )
    y = quantized.reshape(-1, op.hidden_size) @ weights.T + or_zero(bias)
    y = y.reshape(*x.shape[:-1], weights.shape[0]).astype(np.float32)
    return activate(y, op.activation)


@native(LQFullyConnected, TensorType.FLOAT32)
def build(op: LQFullyConnected, context: Context) -> NativeStep | None:
    """Pack the weights of a layer whose operands are constant."""
    operands = Operands.of(op, context)
    if operands is None:
        return None
    x, ax, aw, binary, bias, offsets = operands
    layer = LevelsLayer(
        op.hidden_size, op.input_offset, op.activation, ax, aw, binary, bias, offsets
    )
    y = context.results[0]
    return dense_step(layer, x, y) or counting.step(layer, x, y)


@portable(LQFullyConnected, TensorType.FLOAT32)
def in_c(op: LQFullyConnected, context: PortableContext) -> list[CCall]:
    """Call the layer in integers, between floats: what is behind knows where these are needed."""
    layer = LevelsLayer(
        op.hidden_size,
        op.input_offset,
        op.activation,
        context.constant(op.input_scales),
        context.constant(op.weights_scales),
        context.constant(op.weights_binary),
        context.optional(op.bias),
        context.optional(op.weights_offsets),
    )
    levels, _ = learned_levels.levels(layer.ax, op.input_offset)
    between = learned_levels.thresholds(levels)
    *before, last = layer_calls(layer, op.input, op.results[0], between, context.vectors)
    ending = activated(op.activation, op.results[0], lambda y: replace(last, writes=(y,)))
    return [*before, *ending]
