"""The baseline: uniform affine quantization after training, computed in float.

Weights get 2^K evenly spaced levels for each output, the first its smallest and the last its
largest weight. Inputs get 2^K for the whole tensor over the range seen on the float network, 0
among them (an integer zero point, as TFLite's specification wants it; weights are spared that,
which favours the baseline at 1 and 2 bits). The layers are the ones that luciole's fit takes.
Weights are rounded in place, inputs pass MINIMUM, QUANTIZE and DEQUANTIZE, which every runtime has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from luciole.exporters import to_bytes
from luciole.interpreter import Interpreter
from luciole.interpreter.records import Records, batch_size
from luciole.ir import Array, Graph, Model, Value
from luciole.ir.ops.elementwise_binary import Minimum
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.quantize import Dequantize, Quantize
from luciole.ir.passes.split_activation import split_activation
from luciole.ir.quantization import Affine
from luciole.lquantizer.calibration.positions import Dense, weight_matrix
from luciole.lquantizer.calibration.watch import watched
from luciole.lquantizer.config import Config
from luciole.lquantizer.network.layers import find_groups
from luciole.lquantizer.rewrite.learned_levels import finish

_PER_OUTPUT = 8
"""Bytes of a step and a smallest level in float32."""


@dataclass(frozen=True)
class Seen:
    """What the float network showed of a layer: its input's range, its outputs' means [o]."""

    low: float
    high: float
    means: Array


def quantize_affine(
    model: Model, records: Records, config: Config, correct: bool = False
) -> tuple[Model, int]:
    """A copy whose layers have affine weights and, but for layers with weights only, inputs; and
    the bytes that its file would have with weights packed at their width.

    ``correct`` moves biases, layer by layer, so that outputs keep their means (Nagel et al. 2019,
    "Data-Free Quantization Through Weight Equalization and Bias Correction", section 4.2, with
    data).
    """
    work = model.clone()
    groups, _ = find_groups(work.graph, config)
    chosen = [(op, group.choice) for group in groups for op in group.ops]
    for op, _ in chosen:
        split_activation(work.graph, op)
    batch = batch_size(Interpreter(work), records)
    size = len(to_bytes(model)) - sum(_saved(g.ops[0], g.choice.weight_bits) for g in groups)
    inputs: dict[Value, Value] = {}
    seen = _seen(work, [op for op, _ in chosen], records, batch)
    for (op, choice), shown in zip(chosen, seen, strict=True):
        _round_weights(work.graph, op, choice.weight_bits)
        if not choice.weights_only:
            _round_input(work.graph, op, shown, choice.input_bits, inputs)
        if correct:
            _correct_bias(work, op, shown.means, records, batch)
    finish(work)
    return work, size


def nearest_levels(weights: Array, bits: int) -> Array:
    """Weights [o, n], each at the nearest of 2^bits evenly spaced levels of its row."""
    low, high = weights.min(1, keepdims=True), weights.max(1, keepdims=True)
    step = (high - low) / (2**bits - 1)
    steps = np.round((weights - low) / np.where(step > 0, step, 1))
    return np.asarray(low + step * steps, np.float32)


def parameters(low: float, high: float, bits: int) -> tuple[float, int]:
    """Scale and zero point (0 to 2^bits - 1) of a range, which is widened to hold 0."""
    low, high = min(low, 0.0), max(high, 0.0)
    scale = (high - low) / (2**bits - 1) or 1.0
    return scale, round(-low / scale)


def _saved(op: Dense, bits: int) -> int:
    weights = weight_matrix(op)
    return weights.nbytes - -(-weights.size * bits // 8) - _PER_OUTPUT * len(weights)


def _seen(model: Model, ops: Sequence[Dense], records: Records, batch: int) -> list[Seen]:
    """One run of the float network."""
    lows, highs = np.full(len(ops), np.inf), np.full(len(ops), -np.inf)
    sums: list[Array] = [np.zeros(len(weight_matrix(op))) for op in ops]
    values = [v for op in ops for v in (op.input, op.output)]
    count = 0
    for part, arrays in watched(model, values, records, batch):
        count += len(part)
        for place, (x, y) in enumerate(zip(arrays[::2], arrays[1::2], strict=True)):
            lows[place] = min(lows[place], float(x.min()))
            highs[place] = max(highs[place], float(x.max()))
            sums[place] = sums[place] + _channel_means(y) * len(part)
    return [
        Seen(float(low), float(high), total / count)
        for low, high, total in zip(lows, highs, sums, strict=True)
    ]


def _channel_means(y: Array) -> Array:
    return np.asarray(y.reshape(-1, y.shape[-1]).mean(0, dtype=np.float64))


def _round_weights(graph: Graph, op: Dense, bits: int) -> None:
    rounded = nearest_levels(weight_matrix(op), bits)
    dims = (op.weights if isinstance(op, FullyConnected) else op.filter).dims
    name = graph.unique_name(f"{op.name}/affine weights")
    op.set_operand(1, graph.add_constant(name, rounded.reshape(dims)))


def _round_input(graph: Graph, op: Dense, seen: Seen, bits: int, done: dict[Value, Value]) -> None:
    """Saturation at -128 cuts below, MINIMUM above; layers with the same input share the result."""
    x = op.input
    if x not in done:
        scale, zero_point = parameters(seen.low, seen.high, bits)
        most = np.asarray([(2**bits - 1 - zero_point) * scale], np.float32)
        limit = graph.add_constant(graph.unique_name(f"{x.name}/most"), most)
        cut = Minimum(x, limit)
        graph.insert_before(op, cut, graph.unique_name(f"{x.name}/cut"))
        integer = Quantize(cut.output)
        graph.insert_before(op, integer, graph.unique_name(f"{x.name}/int"))
        affine = Affine.single(scale, zero_point - 128, integer.output.dtype)
        integer.output.quantization = affine.table()
        real = Dequantize(integer.output)
        graph.insert_before(op, real, graph.unique_name(f"{x.name}/real"))
        done[x] = real.output
    op.set_operand(0, done[x])


def _correct_bias(model: Model, op: Dense, wanted: Array, records: Records, batch: int) -> None:
    total, count = np.zeros(len(wanted)), 0
    for part, (y,) in watched(model, [op.output], records, batch):
        total, count = total + _channel_means(y) * len(part), count + len(part)
    old = np.zeros(len(wanted)) if op.bias is None or op.bias.data is None else op.bias.data
    new = old.reshape(-1) + wanted - total / count
    name = model.graph.unique_name(f"{op.name}/corrected bias")
    op.bias = model.graph.add_constant(name, new.astype(np.float32))
