"""Models of recurrent layers that are compiled, whose shapes and scales chance hardly makes."""

from __future__ import annotations

import numpy as np

from luciole.ir import Model, Op
from luciole.ir.ops.svdf import SVDF
from luciole.ir.ops.unidirectional_sequence_lstm import LSTM, UnidirectionalSequenceLSTM
from luciole.kernels.core.contract import Signature
from luciole.kernels.core.registry import data_types
from luciole.schema.enums import TensorType
from tests.guard.sizes import ODD
from tests.lstm_support import PARTS, integer_lstm
from tests.ops.svdf_support import float_svdf, integer_svdf


def recurrent(cls: type[Op], signature: Signature, rng: np.random.Generator) -> Model | None:
    """Make a model of odd extents, None for what is no such layer."""
    if cls is SVDF:
        return _svdf(signature, rng)
    is_lstm = cls in (LSTM, UnidirectionalSequenceLSTM) and signature[0] == TensorType.INT8
    return _lstm(cls, signature, rng) if is_lstm else None


def _extent(rng: np.random.Generator, most: int = 70) -> int:
    return int(rng.choice([n for n in ODD if 0 < n <= most]))


def _svdf(signature: Signature, rng: np.random.Generator) -> Model:
    batch, rank = (int(n) for n in rng.integers(1, 4, 2))
    sizes = (batch, _extent(rng), _extent(rng), _extent(rng), rank)
    if signature[0] == TensorType.FLOAT32:
        return float_svdf(sizes)
    model = integer_svdf(sizes)
    op = model.graph.ops[0]
    if len(signature) == 2 and isinstance(op, SVDF):
        op.bias = None
    return model


def _lstm(cls: type[Op], signature: Signature, rng: np.random.Generator) -> Model:
    sizes = {"batch": int(rng.integers(1, 4)), "inputs": _extent(rng), "cells": _extent(rng, 40)}
    found = (integer_lstm(cls, part, sizes=sizes) for part in rng.permutation(list(PARTS)).tolist())
    return next(model for model in found if data_types(model.graph.ops[0]) == signature)
