"""From learned uniform formats to operators: layers that compute in float with rounded numbers.

Weights are rounded in place. Inputs pass MINIMUM, QUANTIZE and DEQUANTIZE, which every runtime has.
"""

from __future__ import annotations

import numpy as np

from luciole.ir import Graph, TensorType, Value
from luciole.ir.ops.elementwise_binary import Minimum
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.quantization import Affine
from luciole.lquantizer.calibration.rows import Dense, weight_rows
from luciole.lquantizer.formats.affine import min_max, nearest_levels
from luciole.lquantizer.rewrite.integers import insert_pair

_LOWEST = -128
"""The code of the smallest number, where QUANTIZE to INT8 saturates."""


def round_weights(graph: Graph, op: Dense, bits: int) -> None:
    """Replace a layer's weights by the nearest of 2^bits levels for each output."""
    rounded = nearest_levels(weight_rows(op), bits)
    dims = (op.weights if isinstance(op, FullyConnected) else op.filter).dims
    name = graph.unique_name(f"{op.name}/affine weights")
    op.set_operand(1, graph.add_constant(name, rounded.reshape(dims)))


def rounded_input(graph: Graph, op: Dense, low: float, high: float, bits: int) -> Value:
    """Insert, in front of a layer, operators that round its input to 2^bits numbers between ``low``
    and ``high``, and return their result. Saturation cuts what lies below, MINIMUM what lies above.
    """
    x = op.input
    scale, zero_point = min_max(low, high, bits)
    most = np.asarray([(2**bits - 1 - zero_point) * scale], np.float32)
    limit = graph.add_constant(graph.unique_name(f"{x.name}/most"), most)
    cut = Minimum(x, limit)
    graph.insert_before(op, cut, graph.unique_name(f"{x.name}/cut"))
    affine = Affine.single(scale, zero_point + _LOWEST, TensorType.INT8)
    return insert_pair(graph, cut.output, affine, graph.ops.index(op)).output
