"""Give the channels of a layer's input the same size, by dividing the outputs in front of it.

One set of levels serves a whole tensor, so channels that stay small get few of them. Dividing a
channel where it is made and multiplying the weights that read it changes nothing in float, also
through a RELU (Nagel et al. 2019, "Data-Free Quantization Through Weight Equalization and Bias
Correction", section 4.1). It took a third to nine tenths off the error of inputs with 3 bits in an
autoencoder of dense layers.
"""

from __future__ import annotations

from collections.abc import Callable, Container

import numpy as np

from luciole.ir import Array, Op, Value
from luciole.ir.equalization import rename
from luciole.ir.ops.activations import Relu
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.lq_conv_2d import LQConv2D
from luciole.ir.ops.lq_fully_connected import LQFullyConnected
from luciole.lquantizer.calibration.positions import Dense, Rows
from luciole.schema.enums import ActivationFunctionType

_POWERS = (0.5, 1.0)
"""Of the channels' peaks, tried as scales; other statistics and powers were no better."""
_LEAST = 1e-3
"""The smallest scale as a share of the largest: a channel may be 0 on all that was seen."""
_ROWS = 4096
"""Rows that tell scales apart."""
_HOMOGENEOUS = (ActivationFunctionType.NONE, ActivationFunctionType.RELU)


def source(op: Dense, learned: Container[Op]) -> Op | None:
    """Find the operator whose outputs this layer alone reads, by channel and at most through a
    RELU, where they may be divided: one of ``learned``, or a DEPTHWISE_CONV_2D. None without any.
    """
    value = _only_reader(op.input, op)
    if value is not None and value.producer is not None and isinstance(value.producer.op, Relu):
        value = _only_reader(value.producer.op.operands[0], value.producer.op)
    if value is None or value.producer is None:
        return None
    found = value.producer.op
    if found not in learned and not isinstance(found, DepthwiseConv2D):
        return None
    if found.attributes().get("activation") not in _HOMOGENEOUS or value.shape[-1] != depth(op):
        return None
    alone = all(len(v.users) == 1 and v.is_constant and not v.is_output for v in _scaled(found))
    return found if alone else None


def depth(op: Dense) -> int:
    """Count the channels of a layer's input."""
    return (op.weights if isinstance(op, FullyConnected) else op.filter).dims[-1]


def _only_reader(value: Value | None, op: Op) -> Value | None:
    """Return the tensor where nothing but this operator needs it, else None."""
    if value is None or value.is_output or any(use.op is not op for use in value.users):
        return None
    return value


def _scaled(op: Op) -> list[Value]:
    """List the constants that an operator's outputs are proportional to."""
    if isinstance(op, LQFullyConnected | LQConv2D):
        found = [op.weights_scales, op.weights_offsets, op.bias]
    elif isinstance(op, FullyConnected):
        found = [op.weights, op.bias]
    else:
        assert isinstance(op, Conv2D | DepthwiseConv2D), "a source is one of these"
        found = [op.filter, op.bias]
    return [value for value in found if value is not None]


def divide(op: Op, reader: Dense, scales: Array) -> None:
    """Divide the outputs of a learned or depthwise source by scales [channels].

    The tensors between it and its reader get new names: they do not hold what the float network's
    do any more. What they hold instead is noted in the model.
    """
    for value in _scaled(op):
        data = value.data
        assert data is not None, "what a source's outputs are proportional to is constant"
        by_channel = scales if isinstance(op, DepthwiseConv2D) else _column(scales, data.ndim)
        value.set_data((data / by_channel).astype(np.float32))
    for value in dict.fromkeys([op.results[0], reader.input]):
        rename(value, scales)


def _column(scales: Array, ndim: int) -> Array:
    return scales.reshape(-1, *[1] * (ndim - 1))


def channel_scales(
    rows: Rows, weights: Array, channels: int, quantized: Callable[[Rows], Array]
) -> Array:
    """Find what to divide channels by so that quantizing them disturbs the outputs of weights [o,
    n] least: [channels], ones where nothing is gained.
    """
    step = -(-len(rows.values) // _ROWS)
    some = Rows(rows.values[::step], None if rows.inside is None else rows.inside[::step])
    peaks = np.abs(rows.values).reshape(-1, channels).max(0).astype(np.float64)
    peaks = np.maximum(peaks, max(_LEAST * float(peaks.max()), float(np.finfo(np.float32).tiny)))
    peaks /= np.exp(np.log(peaks).mean())
    tried = [(peaks**power).astype(np.float32) for power in (0.0, *_POWERS)]
    return min(tried, key=lambda scales: _disturbance(some, weights, scales, quantized))


def divided(rows: Rows, scales: Array) -> Rows:
    """Rows whose channels, the fastest to change along a row, are divided by scales."""
    return Rows(rows.values / along(scales, rows.values.shape[1]), rows.inside)


def along(scales: Array, inputs: int) -> Array:
    """Repeat channels' scales for each of a layer's inputs: [n]."""
    return np.tile(scales, inputs // len(scales))


def _disturbance(
    rows: Rows, weights: Array, scales: Array, quantized: Callable[[Rows], Array]
) -> float:
    """Variance that quantizing inputs adds to the outputs."""
    given = divided(rows, scales)
    error = quantized(given) - given.values
    if given.inside is not None:
        error = np.where(given.inside, error, 0)
    moved = (error - error.mean(0)) @ (weights * along(scales, weights.shape[1])).T
    return float(np.mean(np.square(moved, dtype=np.float64)))
