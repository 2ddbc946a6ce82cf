"""Correct the biases of layers, so that their outputs keep their means (Nagel et al. 2019,
"Data-Free Quantization Through Weight Equalization and Bias Correction", section 4.2, with data).
"""

from __future__ import annotations

import numpy as np

from luciole.interpreter.records import Records
from luciole.ir import Array, Model
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.lquantizer.calibration.positions import Dense
from luciole.lquantizer.calibration.statistics import statistics
from luciole.lquantizer.network.preparation import Preparation
from luciole.schema.enums import ActivationFunctionType


def correct_biases(prepared: Preparation, records: Records) -> None:
    """Give the outputs of layers that stay float the mean they had in the float network."""
    twins, batch = prepared.twins, prepared.batch
    for op in prepared.work.graph.ops:
        if op.name not in prepared.skipped or not isinstance(op, FullyConnected | Conv2D):
            continue
        bias = None if op.bias is None else op.bias.data
        if bias is None or op.activation != ActivationFunctionType.NONE or op.output not in twins:
            continue
        (wanted,) = statistics(prepared.reference, [twins[op.output]], records, batch)
        correct_bias(prepared.work, op, wanted.means, records, batch)


def correct_bias(model: Model, op: Dense, wanted: Array, records: Records, batch: int) -> None:
    """Shift a layer's bias, 0 where it has none, so that its outputs have the means ``wanted`` [o].
    The layer has no activation.
    """
    (found,) = statistics(model, [op.output], records, batch)
    bias = None if op.bias is None else op.bias.data
    old = np.zeros(len(wanted), np.float32) if bias is None else bias
    corrected = (old.reshape(-1) + (wanted - found.means)).astype(np.float32).reshape(old.shape)
    op.bias = model.graph.add_constant(model.graph.unique_name(f"{op.name}/bias"), corrected)
