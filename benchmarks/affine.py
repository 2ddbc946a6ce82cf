"""The baseline: uniform affine quantization after training, computed in float.

Weights get 2^K evenly spaced levels for each output, the first its smallest and the last its
largest weight. Inputs get 2^K for the whole tensor over the range seen on the float network, 0
among them (an integer zero point, as TFLite's specification wants it; weights are spared that,
which favours the baseline at 1 and 2 bits). The layers are the ones that luciole's fit takes.
"""

from __future__ import annotations

from luciole.exporters import to_bytes
from luciole.interpreter import Interpreter
from luciole.interpreter.records import Records, batch_size
from luciole.ir import Model, Value
from luciole.ir.passes.split_activation import split_activation
from luciole.lquantizer.assignment.config import Config
from luciole.lquantizer.calibration.rows import Dense, weight_rows
from luciole.lquantizer.calibration.statistics import statistics
from luciole.lquantizer.network.bias import correct_bias
from luciole.lquantizer.network.layers import find_groups
from luciole.lquantizer.rewrite.affine import round_weights, rounded_input
from luciole.lquantizer.rewrite.learned_levels import finish

_PER_OUTPUT = 8
"""Bytes of a step and a smallest level in float32."""


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
    seen = statistics(work, [v for op, _ in chosen for v in (op.input, op.output)], records, batch)
    for (op, choice), x, y in zip(chosen, seen[::2], seen[1::2], strict=True):
        round_weights(work.graph, op, choice.weight_bits)
        if not choice.weights_only:
            given = op.input  # layers with the same input share its rounded form
            if given not in inputs:
                inputs[given] = rounded_input(work.graph, op, x.low, x.high, choice.input_bits)
            op.set_operand(0, inputs[given])
        if correct:
            correct_bias(work, op, y.means, records, batch)
    finish(work)
    return work, size


def _saved(op: Dense, bits: int) -> int:
    weights = weight_rows(op)
    return weights.nbytes - -(-weights.size * bits // 8) - _PER_OUTPUT * len(weights)
