"""Prepare a model before its operators are written: in a copy, where there is anything to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from luciole.exporters.onnx.integers import spell_out
from luciole.ir import Model, Op, Value
from luciole.ir.analysis.decoded import is_decoder, unpacked
from luciole.ir.blockwise import is_coded
from luciole.ir.graph import all_ops
from luciole.ir.ops.levelsdecode import LevelsDecode
from luciole.ir.ops.minifloat import MinifloatDecode
from luciole.ir.ops.unidirectional_sequence_lstm import UnidirectionalSequenceLSTM
from luciole.ir.passes.canonical.infer_shapes import infer_shapes
from luciole.ir.passes.canonical.unroll_unidirseqlstm import unroll_unidirseqlstm
from luciole.ir.passes.folding.fold_constants import fold_kind
from luciole.ir.recurrent import NORMS


def prepared(model: Model, stays: Callable[[Op], bool]) -> Model:
    """Compute integers as real numbers between QUANTIZE and DEQUANTIZE, except operators for which
    ``stays`` is true; decode weights of few bits, spell LSTMs out that ONNX's layer does not
    compute, and infer the shapes of outputs that a file leaves open.
    """
    unlike = any(
        isinstance(op, UnidirectionalSequenceLSTM) and why_unlike(op.cell_clip, op.given_operands())
        for op in all_ops(model.graphs)
    )
    codes = any(is_coded(value) for graph in model.graphs for value in graph.values)
    open_ = any(value.has_open_rank for value in model.graph.outputs)
    packed = any(map(is_decoder, all_ops(model.graphs)))
    if not (unlike or codes or open_ or packed):
        return model
    copy = model.clone()
    for graph in copy.graphs if packed else ():
        fold_kind(graph, unpacked, LevelsDecode)
        fold_kind(graph, unpacked, MinifloatDecode)
    if open_:
        infer_shapes(copy.graph)
    for graph in copy.graphs:
        if unlike:
            unroll_unidirseqlstm(graph)
        if codes:
            spell_out(graph, stays)
    return copy


def why_unlike(cell_clip: float, operands: Mapping[str, Value]) -> str | None:
    """Return the property of an LSTM with these operands that ONNX's lacks, or None."""
    reasons = (
        (any(name in operands for name in NORMS), "its gates are normalized"),
        ("projection_weights" in operands, "its outputs are projected"),
        ("input_to_input_weights" not in operands, "its input gate follows from the forget gate"),
        (cell_clip > 0, "its cell state is clipped"),
    )
    return next((why for applies, why in reasons if applies), None)
