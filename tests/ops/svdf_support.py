"""SVDF layers of floats and of integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from luciole.ir import Array, Model
from luciole.ir.ops.svdf import SVDF
from luciole.schema.enums import ActivationFunctionType
from tests.recurrent_support import layer
from tests.support import Affine, one_op

RELU = ActivationFunctionType.RELU
Sizes = tuple[int, int, int, int, int]


def float_svdf(sizes: Sizes, hybrid: bool = False, **attributes: Any) -> Model:
    batch, inputs, units, memory, rank = sizes
    filters = units * rank
    shapes: dict[str, tuple[int, ...]] = {
        "input": (batch, inputs),
        "weights_feature": (filters, inputs),
        "weights_time": (filters, memory),
        "bias": (units,),
        "state": (batch, filters * memory),
    }
    return layer(SVDF, shapes, hybrid=hybrid, rank_=rank, **attributes)


def integer_svdf(sizes: Sizes, scales: Sequence[float] = (0.01, 1e-4)) -> Model:
    batch, inputs, units, memory, rank = sizes
    filters, random = units * rank, np.random.default_rng(3)
    arrays: list[Array | None] = [
        np.zeros((batch, inputs), np.int8),
        random.integers(-127, 128, (filters, inputs)).astype(np.int8),
        random.integers(-9000, 9000, (filters, memory)).astype(np.int16),
        random.integers(-900, 900, units).astype(np.int32),
        np.zeros((batch, filters * memory), np.int16),
    ]
    feature, state = scales
    affine = [Affine(0.02, 3), Affine(feature), Affine(1e-4), Affine(1e-8), Affine(state)]
    given: dict[str, Any] = {"affine": affine, "results": [Affine(0.03, -20)]}
    model = one_op(SVDF, arrays, (1, 2, 3), rank_=rank, activation=RELU, **given)
    model.graph.inputs.pop().is_variable = True
    return model
