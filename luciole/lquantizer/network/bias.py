"""Correct the biases of layers that stay float behind layers that do not (Nagel et al. 2019,
"Data-Free Quantization Through Weight Equalization and Bias Correction", section 4.2, with data).
"""

from __future__ import annotations

import numpy as np

from luciole.interpreter.records import Records
from luciole.ir import Array, Model, Value
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.lquantizer.calibration.watch import watched
from luciole.lquantizer.network.preparation import Preparation
from luciole.schema.enums import ActivationFunctionType


def correct_biases(prepared: Preparation, records: Records) -> None:
    """Give the outputs of layers that stay float the mean they had in the float network."""
    graph, twins = prepared.work.graph, prepared.twins
    for op in graph.ops:
        if op.name not in prepared.skipped or not isinstance(op, FullyConnected | Conv2D):
            continue
        bias = None if op.bias is None else op.bias.data
        if bias is None or op.activation != ActivationFunctionType.NONE or op.output not in twins:
            continue
        wanted = _mean(prepared.reference, twins[op.output], bias.size, records, prepared.batch)
        shift = wanted - _mean(prepared.work, op.output, bias.size, records, prepared.batch)
        corrected = (bias.reshape(-1) + shift).astype(np.float32).reshape(bias.shape)
        op.bias = graph.add_constant(graph.unique_name(f"{op.name}/bias"), corrected)


def _mean(model: Model, value: Value, channels: int, records: Records, batch: int) -> Array:
    """The mean of a tensor along its last axis' elements: [channels]."""
    total, count = np.zeros(channels), 0
    for _, (array,) in watched(model, [value], records, batch):
        rows = array.reshape(-1, channels)
        total += rows.sum(0, dtype=np.float64)
        count += len(rows)
    return total / count
