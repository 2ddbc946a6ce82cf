"""The compiled LSTMs in integers against the reference and LiteRT."""

from __future__ import annotations

import numpy as np
import pytest

from luciole.ir import Array, Model, Op, TensorType, Value
from luciole.ir.ops.unidirectional_sequence_lstm import LSTM, UnidirectionalSequenceLSTM
from luciole.kernels.core import evaluation, registry
from tests.lstm_support import HIDDEN, PARTS, integer_lstm
from tests.native_support import built, run_steps
from tests.recurrent_support import outputs_in_litert, outputs_of_plan
from tests.support import Affine

pytestmark = pytest.mark.filterwarnings("error")

SIZES = [{}, {"cells": 16, "inputs": 16}, {"batch": 2, "inputs": 9, "cells": 37}]
BOTH = pytest.mark.parametrize("cls", [LSTM, UnidirectionalSequenceLSTM])
DTYPES = {TensorType.INT8: np.int8, TensorType.INT16: np.int16}


def inputs(model: Model, count: int = 4) -> list[list[Array]]:
    random, shape = np.random.default_rng(8), model.graph.inputs[0].dims
    return [[random.integers(-128, 128, shape).astype(np.int8)] for _ in range(count)]


def operands_of(op: Op) -> list[Array | None]:
    def contents(value: Value | None) -> Array | None:
        if value is None or value.data is not None:
            return None if value is None else value.data
        return np.zeros(value.dims, DTYPES[value.dtype])

    return [contents(value) for value in op.operands]


def check_compiled(model: Model) -> None:
    """Results and states of several runs are the reference's."""
    op, runs = model.graph.ops[0], inputs(model)
    kernel, operands = registry.find_reference(op), operands_of(op)
    step, context = built(op, operands)
    assert step is not None
    states = [n for n, value in enumerate(op.operands) if value is not None and value.is_variable]
    assert len(states) == 2
    given = context.operands[0]
    assert given is not None
    for (x,) in runs:
        operands[0] = given[...] = x
        (wanted,) = evaluation.call(kernel, op, operands)
        run_steps(step, [step.record])
        np.testing.assert_array_equal(context.results[0], wanted)
        assert len(np.unique(wanted)) > 1
        for n in states:
            np.testing.assert_array_equal(context.operands[n], operands[n])


@BOTH
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("sizes", SIZES)
def test_results_and_states_are_those_of_the_reference(
    cls: type[Op], part: str, sizes: dict[str, int]
) -> None:
    check_compiled(integer_lstm(cls, part, sizes=sizes))


@pytest.mark.parametrize("part", ["plain", "projected"])
def test_clipped_and_time_major_runs_are_those_of_the_reference(part: str) -> None:
    check_compiled(integer_lstm(LSTM, part, cell_clip=2.0, proj_clip=0.5))
    sequence = UnidirectionalSequenceLSTM
    check_compiled(integer_lstm(sequence, part, cell_clip=2.0, proj_clip=0.5, time_major=True))


@BOTH
@pytest.mark.parametrize("part", ["plain", "no input gate", "projected", "normalized"])
def test_runs_are_those_of_litert(cls: type[Op], part: str) -> None:
    model = integer_lstm(cls, part, sizes={"inputs": 9, "cells": 37})
    runs = inputs(model)
    for (a,), (b,) in zip(
        outputs_of_plan(model, runs), outputs_in_litert(model, runs), strict=True
    ):
        np.testing.assert_array_equal(a, b, strict=True)


def test_scales_that_lead_beyond_32_bits_are_left_to_the_reference() -> None:
    model = integer_lstm(LSTM, "projected", Affine(2.0**20, HIDDEN.zero_point))
    op = model.graph.ops[0]
    assert built(op, operands_of(op))[0] is None
