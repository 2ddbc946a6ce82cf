"""Store the weights of recurrent layers as integers: their kernels round what meets them when they
run, as those of ``dynamic`` do.
"""

from __future__ import annotations

from collections.abc import Container

import numpy as np

from luciole.ir import Graph, Op, TensorType, Value
from luciole.ir.analysis.constancy import constant_bytes
from luciole.ir.ops.unidirectional_sequence_lstm import LSTM, LSTMLayer, UnidirectionalSequenceLSTM
from luciole.ir.recurrent import PEEPHOLES
from luciole.lquantizer.assignment.schemes import Scheme
from luciole.lquantizer.formats.integers import weight_scales
from luciole.lquantizer.report import LayerReport
from luciole.lquantizer.rewrite.integers import weight_codes
from luciole.lquantizer.rewrite.recurrent import is_matrix
from luciole.schema.enums import ActivationFunctionType

_SINCE: dict[type[Op], int] = {LSTM: 3, UnidirectionalSequenceLSTM: 2}
"""First versions with integer weights under a float input (TFLite's ``op_version.cc``)."""
_MOST = 127


def obstacle_of_layer(op: LSTMLayer, types: Scheme) -> str | None:
    """Return the reason why a layer cannot compute with the scheme's element types throughout, None
    where it can.
    """
    reason = _obstacle(op, types)
    return None if reason is None else f"{reason}; its weights are integers"


def _obstacle(op: LSTMLayer, types: Scheme) -> str | None:
    if types.activations != TensorType.INT8 or types.weights != TensorType.INT8:
        return f"it has state, and no kernel on {(types.activations or types.weights).name}"
    if op.activation != ActivationFunctionType.TANH:
        return f"its activation is {op.activation.name}, and integers know TANH alone"
    operands = op.given_operands()
    slots = [slot for slot, _ in enumerate(op.operands) if is_matrix(op, slot)]
    states = (op.output_state, op.cell_state)
    others = [v for v in operands.values() if v is not op.input and v not in states]
    if not all(_is_plain(op.operands[slot]) for slot in slots) or not all(map(_is_known, others)):
        return "its weights are computed, or no matrices of numbers"
    if any(len(state.users) != 1 or state.buffer is not None for state in states):
        return "its state is used elsewhere, or does not begin with 0"
    if "projection_weights" in operands and not operands.keys().isdisjoint(PEEPHOLES):
        return "TFLite's kernel on integers mistakes outputs for cells where it has peepholes"
    return None


def store_recurrent_weights(graph: Graph, chosen: Container[Op]) -> dict[Op, LayerReport]:
    """Store the constant float weights of each chosen LSTM as INT8, one scale for each matrix, and
    report on them.
    """
    reports: dict[Op, LayerReport] = {}
    for op in [one for one in graph.ops if isinstance(one, LSTMLayer) and one in chosen]:
        slots = [slot for slot, _ in enumerate(op.operands) if is_matrix(op, slot)]
        values = [op.operands[slot] for slot in slots]
        if not all(_is_plain(value) for value in values):
            continue
        reports[op] = LayerReport(op.name, None, 8, bytes_before=constant_bytes(op))
        for slot in slots:
            _store(graph, op, slot)
        op.version = max(op.version, _SINCE[type(op)])
        reports[op].bytes_after = constant_bytes(op)
    return reports


def _is_known(value: Value) -> bool:
    """Check whether a tensor holds finite constant floats."""
    if value.dtype != TensorType.FLOAT32 or value.data is None:
        return False
    return bool(np.isfinite(value.data).all())


def _is_plain(value: Value | None) -> bool:
    """Check whether weights are a matrix of finite constant floats."""
    return value is not None and len(value.dims) == 2 and _is_known(value)


def _store(graph: Graph, op: Op, slot: int) -> None:
    value = op.required(slot)
    scales = weight_scales(value.contents, _MOST, channels=False, searched=False)
    codes = np.clip(np.rint(value.contents / scales), -_MOST, _MOST)
    stored, affine = weight_codes(codes, scales, 0, TensorType.INT8)
    constant = graph.add_constant(graph.unique_name(f"{value.name}/integers"), stored)
    constant.quantization = affine.table()
    op.set_operand(slot, constant)
