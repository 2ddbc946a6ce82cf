"""Small models of operators that chance hardly makes: layers with states, rows by numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from luciole.ir import Model, Op, TensorType
from luciole.ir.ops.bidirectional_sequence_lstm import BidirectionalSequenceLSTM
from luciole.ir.ops.bidirectional_sequence_rnn import BidirectionalSequenceRNN
from luciole.ir.ops.embedding_lookup_sparse import EmbeddingLookupSparse
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.gru import GRU
from luciole.ir.ops.non_max_suppression import NonMaxSuppression
from luciole.ir.ops.range import Range
from luciole.ir.ops.rnn import RNN, UnidirectionalSequenceRNN
from luciole.ir.ops.svdf import SVDF
from luciole.ir.ops.tflite_detection_postprocess import TFLiteDetectionPostProcess
from luciole.ir.ops.unidirectional_sequence_lstm import LSTM, UnidirectionalSequenceLSTM
from luciole.ir.recurrent import LSTM_AUXILIARY
from luciole.schema.enums import ActivationFunctionType
from tests.lstm_support import PARTS, PLAIN, integer_lstm, lstm_shapes
from tests.ops import int8_support
from tests.recurrent_support import integer_svdf, layer
from tests.support import Affine, one_op

TANH = ActivationFunctionType.TANH
RNN_SHAPES = {"weights": (4, 5), "recurrent_weights": (4, 4), "bias": (4,), "hidden_state": (3, 4)}
SVDF_SHAPES = {"weights_feature": (8, 5), "weights_time": (8, 6), "bias": (4,), "state": (3, 48)}
GRU_SHAPES = {"hidden_hidden": (12, 5), "hidden_hidden_bias": (12,), "hidden_input": (12, 4)}
GRU_SHAPES |= {"hidden_input_bias": (12,), "state": (3, 4)}


def examples(cls: type[Op], first: TensorType) -> list[Model]:
    """List those of an operator whose first operand has an element type: 3 batches, 6 steps."""
    if first == TensorType.INT8:
        return _integers(cls)
    step, sequence = {"input": (3, 5)}, {"input": (3, 6, 5)}
    if cls is SVDF:
        return [layer(SVDF, step | SVDF_SHAPES, rank_=2)]
    if cls is GRU:
        return [layer(GRU, {"input": (6, 3, 5)} | GRU_SHAPES)]
    if cls in (RNN, UnidirectionalSequenceRNN):
        return [layer(cls, (step if cls is RNN else sequence) | RNN_SHAPES)]
    if cls in (LSTM, UnidirectionalSequenceLSTM):
        shapes = (lstm_shapes((*PARTS[p], *LSTM_AUXILIARY)) for p in ("plain", "everything"))
        given = step if cls is LSTM else sequence
        return [layer(cls, given | some, activation=TANH) for some in shapes]
    return _both_ways(cls) or _by_numbers(cls)


def _integers(cls: type[Op]) -> list[Model]:
    if cls in (LSTM, UnidirectionalSequenceLSTM):
        return [integer_lstm(cls, part) for part in ("plain", "everything")]
    if cls is FullyConnected:
        made = int8_support.layer(cls, (3, 10), (15, 10), 1)
        return [one_op(cls, made.operands, (1, 2), **made.options)]
    return [integer_svdf()] if cls is SVDF else []


def _both_ways(cls: type[Op]) -> list[Model]:
    """The same layer from both ends."""
    if cls is BidirectionalSequenceRNN:
        return [layer(cls, {"input": (3, 6, 5)} | _twice(RNN_SHAPES))]
    if cls is BidirectionalSequenceLSTM:
        one = lstm_shapes((*PLAIN, *LSTM_AUXILIARY))
        one["activation_state"] = one.pop("output_state")
        return [layer(cls, {"input": (6, 3, 5)} | _twice(one), activation=TANH)]
    return []


def _twice(shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    return {f"{way}_{name}": shape for way in ("fw", "bw") for name, shape in shapes.items()}


def _by_numbers(cls: type[Op]) -> list[Model]:
    rng = np.random.default_rng(4)
    if cls is Range:
        return [one_op(cls, [np.array(n, np.float32) for n in (0, 9, 1)], (0, 1, 2))]
    if cls is EmbeddingLookupSparse:
        places = np.array([[0, 0], [0, 1], [2, 0]], np.int32)
        arrays: list[Any] = [np.array([1, 0, 3], np.int32), places, np.array([7, 2], np.int32)]
        weights, rows = rng.random(3).astype(np.float32), rng.random((5, 4)).astype(np.float32)
        return [one_op(cls, [*arrays, weights, rows], (0, 1, 2))]
    if issubclass(cls, NonMaxSuppression):
        numbers = [np.array(n, np.float32) for n in (0.5, 0.1, 0)]
        boxes, scores = rng.random((9, 4)).astype(np.float32), rng.random(9).astype(np.float32)
        given = [boxes, scores, np.array(5, np.int32), *numbers]
        return [one_op(cls, given[: len(cls.operand_fields())])]
    if cls is TFLiteDetectionPostProcess:
        sizes = ((1, 9, 4), (1, 9, 3), (9, 4))
        scales: dict[str, Any] = dict.fromkeys(("x_scale", "y_scale", "h_scale", "w_scale"), 5.0)
        counts: dict[str, Any] = {
            "max_detections": 6,
            "max_classes_per_detection": 2,
            "num_classes": 3,
        }
        counts |= {"detections_per_class": 5, "nms_iou_threshold": 0.5}
        arrays = [rng.integers(0, 5, shape).astype(np.uint8) for shape in sizes]
        return [one_op(cls, arrays, (2,), affine=[Affine(0.25)] * 3, **scales, **counts)]
    return []
