"""The network in memory that a file's figures are held against."""

from __future__ import annotations

import numpy as np

import luciole
from luciole.ir import Model
from luciole.ir.analysis.bias_steps import steps_of_bias
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.softmax import LogSoftmax
from luciole.lquantizer.proving.simulation import simulation_of
from tests.lquantizer.networks import Builder
from tests.networks import random


def layer_of(model: Model) -> FullyConnected:
    (op,) = [op for op in model.graph.ops if isinstance(op, FullyConnected)]
    return op


def test_a_bias_has_the_steps_of_the_sums_that_it_is_added_to() -> None:
    """LOG_SOFTMAX has steps of a sixteenth, and 4 bits of weights have wide ones."""
    b = Builder()
    x = b.graph.add_input("x", (1, 16))
    bias = b.constant(random(3, 8))
    b.graph.outputs = [b.add(FullyConnected(b.add(LogSoftmax(x)), b.weights(8, 16), bias))]
    result = luciole.quantize(b.model, {"x": random(1, 40, 16)}, scheme="w4a8", proof=False)
    written, simulated = layer_of(result.model), layer_of(simulation_of(result))
    steps = steps_of_bias(written, written.operands)
    codes, real = (op.bias.data for op in (written, simulated) if op.bias is not None)
    assert steps is not None
    assert codes is not None
    assert real is not None
    assert bias.data is not None
    assert np.abs(real - bias.data).max() > steps.min() / 4
    np.testing.assert_allclose(real, codes * steps, rtol=1e-6)
