"""UNIDIRECTIONAL_SEQUENCE_LSTM: numbers and states against LiteRT, and what is refused."""

import numpy as np
import pytest

from luciole.exporters import to_bytes
from luciole.importers import load
from luciole.ir import Array, LucioleError, ShapeError
from luciole.ir.ops.unidirectional_sequence_lstm import UnidirectionalSequenceLSTM
from luciole.ir.recurrent import INPUT_GATE, NORMS, PEEPHOLES
from luciole.schema.enums import ActivationFunctionType
from tests.ops.sequence_lstm_support import (
    PLAIN,
    TIME,
    VARIANTS,
    lstm,
    outputs_here,
    outputs_in_litert,
    run_here,
    states,
)
from tests.support import data_path

pytestmark = pytest.mark.filterwarnings("error")

SIZES = {"batch": 3, "inputs": 5, "cells": 4, "outputs": 4}


def assert_close(ours: list[Array], theirs: list[Array]) -> None:
    for a, b in zip(ours, theirs, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def sequences(shape: tuple[int | None, ...]) -> list[Array]:
    random = np.random.default_rng(12)
    return [random.normal(0, 1, tuple(n or 1 for n in shape)).astype(np.float32) for _ in range(3)]


@pytest.mark.parametrize("variant", VARIANTS)
def test_three_runs_are_those_of_litert(variant: str) -> None:
    left_out, attributes = VARIANTS[variant]
    sizes = {**SIZES, "outputs": SIZES["cells"] if "projection_weights" in left_out else 2}
    model = lstm(left_out, sizes, **attributes)
    runs = sequences(model.graph.inputs[0].shape)
    theirs = outputs_in_litert(to_bytes(model, "tflite"), runs)
    assert_close(outputs_here(model, runs), theirs)


def test_a_trained_model_is_that_of_litert() -> None:
    path = data_path("models/mnist_lstm_fp32.tflite")
    model = load(path)
    op = model.graph.ops[0]
    assert list(op.verify()) == []
    runs = [x / 3 for x in sequences(model.graph.inputs[0].shape)]
    theirs = outputs_in_litert(path.read_bytes(), runs, model.graph.values.index(op.output))
    assert_close(outputs_here(model, runs), theirs)


def test_states_hold_the_last_step_and_are_read_again() -> None:
    model = lstm(PLAIN, SIZES)
    x = sequences(model.graph.inputs[0].shape)[0]
    state = states(model)
    whole = run_here(model, x, state)
    np.testing.assert_array_equal(state[0], whole[:, -1])
    state = states(model)
    parts = [run_here(model, part, state) for part in (x[:, :2], x[:, 2:2], x[:, 2:])]
    np.testing.assert_array_equal(np.concatenate(parts, 1), whole)


def test_diagonal_recurrent_weights_are_those_of_litert() -> None:
    full = lstm(PLAIN, SIZES)
    diagonal = lstm(PLAIN, SIZES)
    for slot in range(5, 9):
        vector = np.linspace(-1, 1, 4, dtype=np.float32) * slot
        for model, array in ((full, np.diag(vector)), (diagonal, vector)):
            value = model.graph.ops[0].operands[slot]
            assert value is not None
            value.make_constant(array)
    op = diagonal.graph.ops[0]
    assert isinstance(op, UnidirectionalSequenceLSTM)
    op.diagonal_recurrent_tensors = True
    assert op.result_shapes() == ((3, TIME, 4),)
    runs = sequences(full.graph.inputs[0].shape)
    ours = outputs_here(diagonal, runs)
    assert_close(ours, outputs_here(full, runs))
    assert_close(ours, outputs_in_litert(to_bytes(diagonal, "tflite"), runs))


def test_unknown_extents() -> None:
    model = lstm(PLAIN, SIZES)
    model.graph.inputs[0].shape = (None, None, 5)
    for value in model.graph.values:
        if value.is_variable:
            value.shape = (None, 4)
    assert model.graph.ops[0].result_shapes() == ((None, None, 4),)


@pytest.mark.parametrize(
    ("left_out", "sentence"),
    [
        (
            ("input_to_input_weights",),
            "input_to_input_weights is absent and recurrent_to_input_weights is",
        ),
        (("input_gate_bias",), "input_gate_bias is absent and input_to_input_weights is given"),
        (
            ("cell_to_output_weights",),
            "cell_to_output_weights is absent and cell_to_input_weights is",
        ),
        (
            ("cell_to_input_weights",),
            "cell_to_input_weights is absent and cell_to_forget_weights is",
        ),
        (
            NORMS[1:2],
            "forget_layer_norm_coefficients is absent and input_layer_norm_coefficients is",
        ),
        (INPUT_GATE, "cell_to_input_weights is given without input_to_input_weights"),
        (
            (*INPUT_GATE, *PEEPHOLES),
            "input_layer_norm_coefficients is given without input_to_input",
        ),
        (("projection_weights",), "projection_bias is given without projection_weights"),
        (("forget_gate_bias",), "needs operand 'forget_gate_bias'"),
    ],
)
def test_lstm_refuses_half_of_a_set_of_parameters(left_out: tuple[str, ...], sentence: str) -> None:
    with pytest.raises((ShapeError, TypeError), match=sentence):
        lstm(left_out, SIZES)


@pytest.mark.parametrize(
    ("name", "shape", "sentence"),
    [
        ("input", (3, 5), r"input has shape \[3,5\], rank 3 is needed"),
        ("input_to_cell_weights", (4, 6), r"has shape \[4,6\], \[cells 4, inputs 5\] is needed"),
        (
            "recurrent_to_forget_weights",
            (3, 4),
            r"has shape \[3,4\], \[cells 4, outputs 4\] is needed",
        ),
        ("recurrent_to_forget_weights", (4,), r"has shape \[4\], rank 2 is needed"),
        ("output_gate_bias", (3,), r"has shape \[3\], \[cells 4\] is needed"),
        ("cell_state", (1, 4), r"has shape \[1,4\], \[batch 3, cells 4\] is needed"),
    ],
)
def test_lstm_refuses_shapes_that_do_not_fit(
    name: str, shape: tuple[int, ...], sentence: str
) -> None:
    op = lstm(PLAIN, SIZES).graph.ops[0]
    dict(op.named_operands())[name].shape = shape  # type: ignore[union-attr]
    with pytest.raises(ShapeError, match=sentence):
        op.result_shapes()


def test_lstm_refuses_outputs_that_are_no_cells_without_projection() -> None:
    with pytest.raises(ShapeError, match="4 cells give 2 outputs: without projection_weights"):
        lstm(PLAIN, {**SIZES, "outputs": 2})


def test_lstm_refuses_bad_clips_and_states_that_are_no_variables() -> None:
    op = lstm(PLAIN, SIZES, cell_clip=-1.0, proj_clip=float("nan")).graph.ops[0]
    dict(op.named_operands())["cell_state"].is_variable = False  # type: ignore[union-attr]
    assert list(op.verify()) == [
        "cell_clip is -1.0; it must be 0 (no clipping) or positive",
        "proj_clip is nan; it must be 0 (no clipping) or positive",
        "cell_state 'cell_state' is not a variable tensor: it must be one",
    ]


def test_lstm_refuses_an_activation_without_meaning() -> None:
    model = lstm(PLAIN, SIZES, activation=ActivationFunctionType.SIGN_BIT)
    with pytest.raises(LucioleError, match="SIGN_BIT is not supported for float32"):
        outputs_here(model, sequences(model.graph.inputs[0].shape))
