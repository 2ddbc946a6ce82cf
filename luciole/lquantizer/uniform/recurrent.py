"""Store the weights of recurrent layers as integers: their kernels round what meets them when they
run, as those of ``dynamic`` do.
"""

from __future__ import annotations

from collections.abc import Container

import numpy as np

from luciole.ir import Graph, Op, TensorType, Value
from luciole.ir.analysis.constancy import constant_bytes
from luciole.ir.ops.unidirectional_sequence_lstm import LSTM, LSTMLayer, UnidirectionalSequenceLSTM
from luciole.ir.recurrent import WEIGHTS
from luciole.lquantizer.methods.uniform import weight_scales
from luciole.lquantizer.report import LayerReport
from luciole.lquantizer.rewrite.integers import weight_codes

_SINCE: dict[type[Op], int] = {LSTM: 3, UnidirectionalSequenceLSTM: 2}
"""First versions with integer weights under a float input (TFLite's ``op_version.cc``)."""
_MOST = 127


def store_recurrent_weights(graph: Graph, chosen: Container[Op]) -> dict[Op, LayerReport]:
    """Let every chosen LSTM whose weights are constant and float have them as INT8, one scale for
    each matrix, and say so.
    """
    reports: dict[Op, LayerReport] = {}
    for op in [one for one in graph.ops if isinstance(one, LSTMLayer) and one in chosen]:
        slots = [slot for slot, _ in enumerate(op.operands) if _is_matrix(op, slot)]
        values = [op.operands[slot] for slot in slots]
        if not all(_is_plain(value) for value in values):
            continue
        reports[op] = LayerReport(op.name, None, 8, bytes_before=constant_bytes(op))
        for slot in slots:
            _store(graph, op, slot)
        op.version = max(op.version, _SINCE[type(op)])
        reports[op].bytes_after = constant_bytes(op)
    return reports


def _is_matrix(op: Op, slot: int) -> bool:
    return op.operands[slot] is not None and op.operand_field(slot).dtypes == WEIGHTS


def _is_plain(value: Value | None) -> bool:
    """Tell whether weights are a matrix of finite constant floats."""
    if value is None or value.dtype != TensorType.FLOAT32 or value.data is None:
        return False
    return len(value.dims) == 2 and bool(np.isfinite(value.data).all())


def _store(graph: Graph, op: Op, slot: int) -> None:
    value = op.operands[slot]
    assert value is not None, "it was looked at"
    assert value.data is not None, "it is constant"
    scales = weight_scales(value.data, _MOST, channels=False, searched=False)
    codes = np.clip(np.rint(value.data / scales), -_MOST, _MOST)
    stored, affine = weight_codes(codes, scales, 0, TensorType.INT8)
    constant = graph.add_constant(graph.unique_name(f"{value.name}/integers"), stored)
    constant.quantization = affine.table()
    op.set_operand(slot, constant)
