"""The baseline: uniform affine quantization after training, computed in float.

Weights get 2^K evenly spaced levels for each output, the first its smallest and the last its
largest weight. Inputs get 2^K for the whole tensor over the range seen on the float network, 0
among them (an integer zero point, as TFLite's specification wants it; weights are spared that,
which favours the baseline at 1 and 2 bits). The layers are the ones that luciole's fit takes.
"""

from __future__ import annotations

import numpy as np

from luciole.exporters import to_bytes
from luciole.interpreter import Interpreter
from luciole.interpreter.records import Records, batch_size
from luciole.ir import Array, Graph, Model, TensorType, Value
from luciole.ir.ops.elementwise_binary import Minimum
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.passes.split_activation import split_activation
from luciole.ir.quantization import Affine
from luciole.lquantizer.assignment.config import Config
from luciole.lquantizer.calibration.rows import Dense, weight_rows
from luciole.lquantizer.calibration.watch import watched
from luciole.lquantizer.formats.affine import Range
from luciole.lquantizer.network.bias import channel_means, correct_bias
from luciole.lquantizer.network.layers import find_groups
from luciole.lquantizer.rewrite.integers import insert_pair
from luciole.lquantizer.rewrite.learned_levels import finish

_PER_OUTPUT = 8
"""Bytes of a step and a smallest level in float32."""
_LOWEST = -128
"""The code of the smallest number, where QUANTIZE to INT8 saturates."""


def quantize_affine(
    model: Model, records: Records, config: Config, correct: bool = False
) -> tuple[Model, int]:
    """Copy a model whose layers then have affine weights and, but for layers with weights only,
    inputs. Returns it with the bytes that its file would have with weights packed at their width.

    ``correct`` moves biases, layer by layer, so that outputs keep their means.
    """
    work = model.clone()
    groups, _ = find_groups(work.graph, config)
    chosen = [(op, group.choice) for group in groups for op in group.ops]
    for op, _ in chosen:
        split_activation(work.graph, op)
    batch = batch_size(Interpreter(work), records)
    size = len(to_bytes(model)) - sum(_saved(g.ops[0], g.choice.weight_bits) for g in groups)
    inputs: dict[Value, Value] = {}
    reached = _reached(work, [op.input for op, _ in chosen], records, batch)
    means = [channel_means(work, op.output, records, batch) for op, _ in chosen if correct]
    for place, (op, choice) in enumerate(chosen):
        round_weights(work.graph, op, choice.weight_bits)
        if not choice.weights_only:
            given = op.input  # layers with the same input share its rounded form
            if given not in inputs:
                inputs[given] = rounded_input(work.graph, op, *reached[place], choice.input_bits)
            op.set_operand(0, inputs[given])
        if correct:
            correct_bias(work, op, means[place], records, batch)
    finish(work)
    return work, size


def _saved(op: Dense, bits: int) -> int:
    weights = weight_rows(op)
    return weights.nbytes - -(-weights.size * bits // 8) - _PER_OUTPUT * len(weights)


def _reached(model: Model, values: list[Value], records: Records, batch: int) -> list[Range]:
    """Find the least and the largest number of tensors over all records."""
    ranges = [(np.inf, -np.inf) for _ in values]
    for _, arrays in watched(model, values, records, batch):
        for place, (array, (low, high)) in enumerate(zip(arrays, ranges, strict=True)):
            ranges[place] = (min(low, float(array.min())), max(high, float(array.max())))
    return ranges


def min_max(low: float, high: float, bits: int) -> tuple[float, int]:
    """Choose the scale and the zero point (0 to 2^bits - 1) of a tensor by its smallest and its
    largest element.

    The range is widened to hold 0, which gets a code of its own (TFLite's 8-bit quantization
    specification): scale = (high - low) / (2^bits - 1), zero point = round(-low / scale).
    """
    low, high = min(low, 0.0), max(high, 0.0)
    scale = (high - low) / (2**bits - 1) or 1.0
    return scale, round(-low / scale)


def nearest_levels(weights: Array, bits: int) -> Array:
    """Round weights [o, n] to the nearest of 2^bits evenly spaced levels of their row, from its
    smallest weight to its largest. 0 need not be among them. Returns float32.
    """
    low, high = weights.min(1, keepdims=True), weights.max(1, keepdims=True)
    step = (high - low) / (2**bits - 1)
    steps = np.round((weights - low) / np.where(step > 0, step, 1))
    return np.asarray(low + step * steps, np.float32)


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
