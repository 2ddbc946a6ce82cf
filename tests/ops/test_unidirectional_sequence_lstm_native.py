"""The compiled UNIDIRECTIONAL_SEQUENCE_LSTM against the reference and LiteRT."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from luciole.exporters import to_bytes
from luciole.interpreter import Interpreter
from luciole.ir import Array, Model
from luciole.kernels.core.registry import find_native
from luciole.tools.common.declined import declined
from tests.native_support import built, run_steps
from tests.ops.sequence_lstm_support import (
    PLAIN,
    TIME,
    VARIANTS,
    lstm,
    outputs_here,
    outputs_in_litert,
    states,
)
from tests.support import Affine

pytestmark = pytest.mark.filterwarnings("error")

COMPILED = ("plain", "clipped", "time major")
SIZES = ((1, 1, 1), (3, 5, 4), (2, 40, 16), (2, 3, 33))


def sequences(model: Model, count: int = 3) -> list[Array]:
    shape = model.graph.inputs[0].dims
    return [np.random.default_rng(n).normal(0, 2, shape).astype(np.float32) for n in range(count)]


@pytest.mark.parametrize("variant", COMPILED)
@pytest.mark.parametrize(("batch", "inputs", "cells"), SIZES)
def test_outputs_and_states_are_those_of_the_reference(
    variant: str, batch: int, inputs: int, cells: int
) -> None:
    left_out, attributes = VARIANTS[variant]
    sizes = {"batch": batch, "inputs": inputs, "cells": cells, "outputs": cells}
    model = lstm(left_out, sizes, **attributes)
    op, runs, state = model.graph.ops[0], sequences(model), states(model)
    rest: list[Any] = [None if value is None else value.data for value in op.operands]
    step, context = built(op, [runs[0], *rest[1:18], *state, *rest[20:]])
    assert step is not None
    x = context.operands[0]
    assert x is not None
    for given, wanted in zip(runs, outputs_here(model, runs), strict=True):
        x[...] = given
        run_steps(step, [step.record])
        np.testing.assert_allclose(context.results[0], wanted, atol=2e-6)


def test_runs_are_those_of_litert() -> None:
    sizes = {"batch": 2, "inputs": 7, "cells": 20, "outputs": 20}
    model = lstm(PLAIN, sizes)
    runs = sequences(model)
    interpreter = Interpreter(model)
    ours = [interpreter.run({"x": x})["y"] for x in runs]
    for a, b in zip(ours, outputs_in_litert(to_bytes(model, "tflite"), runs), strict=True):
        assert a.shape == (2, TIME, 20)
        np.testing.assert_allclose(a, b, atol=3e-6)


@pytest.mark.parametrize("variant", COMPILED)
@pytest.mark.parametrize("asymmetric", [False, True])
@pytest.mark.parametrize(("batch", "inputs", "cells"), SIZES)
def test_integer_weights_are_those_of_the_reference(
    variant: str, asymmetric: bool, batch: int, inputs: int, cells: int
) -> None:
    """But where the last bit of an output decides which byte it becomes: where as many outputs are
    clipped above as below, a grid with a zero point has them halfway between two.
    """
    left_out, attributes = VARIANTS[variant]
    sizes = {"batch": batch, "inputs": inputs, "cells": cells, "outputs": cells}
    model = lstm(left_out, sizes, asymmetric_quantize_inputs=asymmetric, **attributes)
    for n, value in model.graph.ops[0].given_operands().items():
        if n.endswith("weights") and value.data is not None:
            value.make_constant(np.clip(np.rint(value.data * 40), -127, 127).astype(np.int8))
            Affine(1 / 40).give(value)
    runs = sequences(model)
    runs[1].flat[: runs[1].size // 2] = 0
    interpreter = Interpreter(model)
    interpreter.allocate_tensors()
    assert not declined(interpreter.plan)
    for given, wanted in zip(runs, outputs_here(model, runs), strict=True):
        found = interpreter.run({"x": given})["y"]
        np.testing.assert_allclose(found, wanted, atol=1 / 255)
        assert np.isclose(found, wanted, atol=2e-6).mean() > 0.9
    runs[2].flat[-1] = np.inf
    assert np.isnan(interpreter.run({"x": runs[2]})["y"]).any()


@pytest.mark.parametrize("variant", [v for v in VARIANTS if v not in COMPILED])
def test_other_variants_are_left_to_the_reference(variant: str) -> None:
    left_out, attributes = VARIANTS[variant]
    model = lstm(left_out, {"batch": 1, "inputs": 2, "cells": 3, "outputs": 3}, **attributes)
    op = model.graph.ops[0]
    assert find_native(op) is not None
    operands = [None if value is None else value.data for value in op.operands]
    operands[0], operands[18:20] = sequences(model)[0], states(model)
    assert built(op, operands)[0] is None
