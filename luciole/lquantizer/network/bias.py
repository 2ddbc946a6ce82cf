"""Correct the biases of layers, so that their outputs keep their means (Nagel et al. 2019,
"Data-Free Quantization Through Weight Equalization and Bias Correction", section 4.2, with data).
"""

from __future__ import annotations

import numpy as np

from luciole.interpreter.records import Records, Track, untracked
from luciole.ir import Array, Model, Op, Value
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.lquantizer.calibration.rows import Dense, bias_of
from luciole.lquantizer.calibration.watch import watched
from luciole.lquantizer.network.preparation import Preparation
from luciole.schema.enums import ActivationFunctionType


def correct_biases(prepared: Preparation, records: Records, track: Track = untracked) -> None:
    """Give the outputs of layers that stay float the mean they had in the float network."""
    twins, batch = prepared.twins, prepared.batch
    layers = [op for op in prepared.work.graph.ops if _is_corrected(prepared, op)]
    step = track("correcting biases", len(layers)) if layers else untracked("", 0)
    for op in layers:
        assert isinstance(op, FullyConnected | Conv2D), "others are not corrected"
        means = channel_means(prepared.reference, twins[op.output], records, batch)
        correct_bias(prepared.work, op, means, records, batch)
        step(1)


def _is_corrected(prepared: Preparation, op: Op) -> bool:
    """Check whether an operator is a layer that stays float, with a bias and no activation."""
    if op.name not in prepared.skipped or not isinstance(op, FullyConnected | Conv2D):
        return False
    bias = None if op.bias is None else op.bias.data
    plain = op.activation == ActivationFunctionType.NONE
    return bias is not None and plain and op.output in prepared.twins


def correct_bias(model: Model, op: Dense, means: Array, records: Records, batch: int) -> None:
    """Shift a layer's bias, 0 where it has none, so that its outputs have the means ``means`` [o].
    The layer has no activation.
    """
    present = channel_means(model, op.output, records, batch)
    shape = (-1,) if op.bias is None else op.bias.dims
    corrected = (bias_of(op) + (means - present)).astype(np.float32).reshape(shape)
    op.bias = model.graph.add_constant(model.graph.unique_name(f"{op.name}/bias"), corrected)


def channel_means(model: Model, value: Value, records: Records, batch: int) -> Array:
    """Run a model's main graph over all records; the mean [channels] of each index of a tensor's
    last axis. Raises QuantizeError where NaN or infinity appears.
    """
    total: Array = np.zeros(())
    count = 0
    for _, (array,) in watched(model, [value], records, batch):
        rows = array.reshape(-1, array.shape[-1])
        total = total + rows.sum(0, dtype=np.float64)
        count += len(rows)
    return total / count
