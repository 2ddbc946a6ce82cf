"""unroll_unidirseqlstm: the steps compute what the operator does, from zero states; what stays.

Sums are grouped otherwise than in the operator: results differ by at most 1e-5 of their range.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from luciole.exporters import to_bytes
from luciole.importers import from_bytes, load
from luciole.interpreter import Interpreter
from luciole.ir import Array, Graph, Model, Shape, TensorType, UnsupportedError, Value
from luciole.ir.ops.activations import Relu
from luciole.ir.ops.control_flow import While
from luciole.ir.ops.unidirectional_sequence_lstm import UnidirectionalSequenceLSTM
from luciole.ir.passes.canonical.unroll_unidirseqlstm import (
    LOOPS,
    MOST_STEPS,
    not_unrolled,
    unroll_unidirseqlstm,
    whole_lstms,
)
from luciole.ir.passes.cleaning.remove_dead import remove_dead, remove_dead_buffers
from luciole.ir.recurrent import INPUT_GATE, NORMS, PEEPHOLES
from luciole.ir.recurrent import LSTM as EXTENTS
from luciole.ir.value import Buffer
from luciole.ir.verify import verify
from luciole.lquantizer.training.tf_table import find_function
from luciole.schema.enums import ActivationFunctionType as Act
from tests.support import data_path, litert

PROJECTION = ("projection_weights", "projection_bias")
PLAIN = (*PEEPHOLES, *NORMS, *PROJECTION)
CIFG = (*INPUT_GATE, PEEPHOLES[0])
STATES = ("output_state", "cell_state")
SIZES = {"batch": 3, "inputs": 5, "cells": 4, "outputs": 4}
TIME = 6

VARIANTS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "plain": (PLAIN, {}),
    "clipped": (PLAIN, {"cell_clip": 0.3}),
    "time major": (PLAIN, {"time_major": True}),
    "no activation": (PLAIN, {"activation": Act.NONE}),
    "relu": (PLAIN, {"activation": Act.RELU}),
    "relu6": (PLAIN, {"activation": Act.RELU6}),
    "no input gate": ((*PLAIN, *CIFG), {}),
    "peepholes": ((*NORMS, *PROJECTION), {}),
    "projected": ((*PEEPHOLES, *NORMS), {"proj_clip": 1.0}),
    "projected without bias": ((*PEEPHOLES, *NORMS, "projection_bias"), {}),
    "everything": (NORMS, {"cell_clip": 2.0, "proj_clip": 0.5}),
    "everything but the input gate": ((*NORMS, *CIFG), {"time_major": True}),
}
"""What is left out, and the attributes."""


def lstm(
    left_out: tuple[str, ...] = PLAIN,
    first: Shape | None = None,
    replaced: dict[str, Array] | None = None,
    **attributes: Any,
) -> Model:
    """A model of one operator with random parameters; ``first`` are the input's first two axes."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    sizes = {**SIZES, "outputs": SIZES["cells"] if "projection_weights" in left_out else 2}
    axes = (TIME, sizes["batch"]) if attributes.get("time_major") else (sizes["batch"], TIME)
    operands = {"input": graph.add_input("x", (*(first or axes), sizes["inputs"]))}
    random = np.random.default_rng(11)
    for name, extents in EXTENTS.items():
        shape = tuple(sizes[e] for e in extents)
        if name in STATES:
            operands[name] = graph.add_value(Value(name, TensorType.FLOAT32, shape))
            operands[name].is_variable = True
        elif name not in left_out:
            data = random.normal(0, 0.7, shape).astype(np.float32)
            operands[name] = graph.add_constant(name, (replaced or {}).get(name, data))
    given: dict[str, Any] = {"activation": Act.TANH, **operands, **attributes}
    graph.append(UnidirectionalSequenceLSTM(**given), "y")
    graph.outputs = list(graph.ops[0].results)
    return model


def operator(model: Model) -> UnidirectionalSequenceLSTM:
    op = model.graph.ops[0]
    assert isinstance(op, UnidirectionalSequenceLSTM)
    return op


def unrolled(model: Model) -> Model:
    """A copy in which every LSTM is gone, and what only it used."""
    copy = model.clone()
    assert unroll_unidirseqlstm(copy.graph)
    remove_dead(copy.graph)
    remove_dead_buffers(copy)
    assert "UNIDIRECTIONAL_SEQUENCE_LSTM" not in kinds(copy)
    assert verify(copy) == []
    return copy


def kinds(model: Model) -> list[str]:
    return [op.kind for op in model.graph.ops]


def sequence(model: Model, seed: int = 12) -> Array:
    shape = model.graph.inputs[0].dims
    return np.random.default_rng(seed).normal(0, 1, shape).astype(np.float32)


def output(model: Model, x: Array) -> Array:
    (y,) = Interpreter(model).run(x).values()
    return y


def assert_same(found: Array, wanted: Array) -> None:
    assert found.shape == wanted.shape
    tolerance = 1e-5 * (wanted.max() - wanted.min())
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance)


# ----------------------------------------------------------------------------------------- numbers
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_steps_compute_what_the_operator_does(variant: str) -> None:
    left_out, attributes = VARIANTS[variant]
    model = lstm(left_out, **attributes)
    x = sequence(model)
    wanted = output(model, x)
    assert np.ptp(wanted) > 0.1
    assert_same(output(unrolled(model), x), wanted)


# Without an activation LiteRT's operator multiplies the output gate by the candidate instead of the
# new cell state (ApplyActivationToVector leaves its target as it was): it is no oracle there.
@pytest.mark.parametrize("variant", [name for name in VARIANTS if name != "no activation"])
def test_the_steps_in_litert_compute_what_its_operator_does(variant: str) -> None:
    left_out, attributes = VARIANTS[variant]
    model = lstm(left_out, **attributes)
    x = sequence(model)
    (wanted,) = litert(to_bytes(model, "tflite"), [x])
    for resolver in ("BUILTIN_REF", "AUTO"):
        (found,) = litert(to_bytes(unrolled(model), "tflite"), [x], resolver)
        assert_same(found, wanted)


def test_diagonal_recurrent_weights_become_matrices() -> None:
    names = [f"recurrent_to_{gate}_weights" for gate in ("input", "forget", "cell", "output")]
    rng = np.random.default_rng(3)
    diagonals: dict[str, Array] = {n: rng.normal(size=4).astype(np.float32) for n in names}
    model = lstm(replaced=diagonals, diagonal_recurrent_tensors=True)
    x = sequence(model)
    assert_same(output(unrolled(model), x), output(model, x))


@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("left_out", [PLAIN, (*PLAIN, *CIFG), NORMS])
def test_short_sequences(steps: int, left_out: tuple[str, ...]) -> None:
    model = lstm(left_out, (3, steps))
    x = sequence(model)
    assert_same(output(unrolled(model), x), output(model, x))


def test_an_open_batch_stays_open() -> None:
    model = lstm(first=(None, TIME))
    steps = unrolled(model)
    assert steps.graph.outputs[0].shape == (None, TIME, 4)
    fixed = lstm()
    for batch in (1, 3):
        x = sequence(fixed)[:batch]
        assert_same(output(steps, x), output(fixed, sequence(fixed))[:batch])


def trained() -> tuple[bytes, Model]:
    content = data_path("models/mnist_lstm_fp32.tflite").read_bytes()
    return content, load(data_path("models/mnist_lstm_fp32.tflite"))


def test_a_trained_model_is_that_of_litert() -> None:
    content, model = trained()
    steps = unrolled(model)
    for seed in range(3):
        x = sequence(model, seed) / 3
        (wanted,) = litert(content, [x])
        assert_same(output(steps, x), wanted)


def test_the_hidden_states_of_a_trained_model_are_those_of_the_operator() -> None:
    """Before softmax squeezes them: every output of every step."""
    _, model = trained()
    x, name = sequence(model) / 3, operator(model).name
    found = []
    for one in (model, unrolled(model)):
        interpreter = Interpreter(one)
        interpreter.run(x)
        (value,) = [v for v in one.graph.values if v.name == name]
        found.append(interpreter.get_tensor(one.graph.values.index(value)))
    assert_same(found[1], found[0])


def test_a_trained_model_runs_in_litert_as_the_original_does() -> None:
    content, model = trained()
    exported = to_bytes(unrolled(model), "tflite")
    for seed, resolver in enumerate(("BUILTIN_REF", "AUTO")):
        x = sequence(model, seed) / 3
        (wanted,) = litert(content, [x], resolver)
        (found,) = litert(exported, [x], resolver)
        assert_same(found, wanted)


# ---------------------------------------------------------------------------------------- rewriting
def test_every_run_starts_from_zeros() -> None:
    model = lstm()
    x = sequence(model)
    kept, fresh = Interpreter(model), Interpreter(unrolled(model))
    first = kept.run(x)["y"]
    assert np.abs(kept.run(x)["y"] - first).max() > 0.01
    assert_same(fresh.run(x)["y"], first)
    assert_same(fresh.run(x)["y"], first)


def test_gates_share_one_layer_and_steps_share_its_weights() -> None:
    steps = unrolled(lstm())
    dense = [op for op in steps.graph.ops if op.kind == "FULLY_CONNECTED"]
    assert len(dense) == TIME
    shapes = {op.operands[1].name: op.operands[1].shape for op in dense if op.operands[1]}
    assert shapes == {"y/step/input_weights": (16, 5), "y/step/recurrent_weights": (16, 4)}
    assert not any(v.is_variable for v in steps.graph.values)
    constants = sum(len(b) for b in steps.buffers)
    assert constants < sum(len(b) for b in lstm().buffers) + 64


def test_names_stay_and_new_ones_are_unique_and_derived() -> None:
    model = lstm()
    graph = model.graph
    graph.add_constant("y/step/0/cell", np.zeros(1, np.float32))
    graph.add_constant("t0/cell", np.zeros(1, np.float32))
    graph.append(Relu(graph.outputs[0]), "z")
    graph.outputs = [graph.values[-1], operator(model).output]
    before = {v.name for v in graph.values}
    assert unroll_unidirseqlstm(graph)
    names = [v.name for v in graph.values]
    assert len(set(names)) == len(names)
    assert all(name.startswith(("y/step_/", "t_")) for name in set(names) - before)
    assert {"y/step_/inputs", "y/step_/1", "t_1/cell"} <= set(names)
    assert [v.name for v in graph.outputs] == ["z", "y"]
    assert graph.outputs[0].producer is not None
    assert graph.outputs[0].producer.op.operands == (graph.outputs[1],)
    assert graph.outputs[1].users[0].op.kind == "RELU"


def test_a_second_run_of_the_pass_changes_nothing() -> None:
    model = lstm()
    assert unroll_unidirseqlstm(model.graph)
    before = kinds(model)
    assert not unroll_unidirseqlstm(model.graph)
    assert kinds(model) == before


def test_several_operators_are_spelled_out_in_order() -> None:
    model = lstm()
    graph = model.graph
    first = operator(model)
    again: dict[str, Any] = {n: v for n, v in first.named_operands() if v is not None}
    for name in STATES:
        again[name] = graph.add_value(Value(f"{name}/2", TensorType.FLOAT32, (3, 4)))
        again[name].is_variable = True
    for gate in ("input", "forget", "cell", "output"):
        again[f"input_to_{gate}_weights"] = again[f"recurrent_to_{gate}_weights"]
    again["input"] = first.output
    graph.append(UnidirectionalSequenceLSTM(**again, activation=Act.TANH), "z")
    graph.outputs = [graph.values[-1]]
    x = sequence(model)
    assert_same(output(unrolled(model), x), output(model, x))


def test_the_file_of_the_steps_is_read_back() -> None:
    steps = unrolled(lstm())
    again = from_bytes(to_bytes(steps))
    x = sequence(steps)
    np.testing.assert_array_equal(output(again, x), output(steps, x))


# ------------------------------------------------------------------------------------------ guards
def computed(model: Model) -> None:
    """Weights that come from the caller."""
    weights = operator(model).input_to_cell_weights
    weights.buffer = None
    model.graph.inputs.append(weights)


def halves(model: Model) -> None:
    weights = operator(model).input_to_cell_weights
    assert weights.data is not None
    weights.make_constant(weights.data.astype(np.float16))


def started(model: Model) -> None:
    ones = np.ones((3, 4), np.float32)
    operator(model).cell_state.buffer = Buffer(ones.reshape(-1).view(np.uint8))


def not_variable(model: Model) -> None:
    operator(model).output_state.make_constant(np.zeros((3, 4), np.float32))
    operator(model).output_state.is_variable = False


def state_is_output(model: Model) -> None:
    model.graph.outputs.append(operator(model).cell_state)


def state_is_input(model: Model) -> None:
    model.graph.inputs.append(operator(model).cell_state)


def state_is_read(model: Model) -> None:
    model.graph.append(Relu(operator(model).output_state), "seen")


def half_a_gate(model: Model) -> None:
    operator(model).input_gate_bias = None


def nothing(model: Model) -> None:
    pass


@pytest.mark.parametrize(
    ("model", "edit", "reason"),
    [
        (lstm(first=(3, None)), nothing, "its number of steps is unknown"),
        (lstm(first=(3, 0)), nothing, "it has 0 steps, 1 to 1024 are spelled out"),
        (lstm(first=(3, MOST_STEPS + 1)), nothing, "it has 1025 steps, 1 to 1024 are spelled out"),
        (lstm((*PEEPHOLES, *PROJECTION)), nothing, "its gates are normalized"),
        (lstm(activation=Act.SIGN_BIT), nothing, "its activation SIGN_BIT has no operator"),
        (lstm(), computed, "input_to_cell_weights is not constant"),
        (lstm(), halves, "input_to_cell_weights is FLOAT16, FLOAT32 is needed"),
        (lstm(), started, "cell_state does not start at zero"),
        (lstm(), not_variable, "output_state is not a variable"),
        (lstm(), state_is_output, "cell_state is used elsewhere too"),
        (lstm(), state_is_input, "cell_state is used elsewhere too"),
        (lstm(), state_is_read, "output_state is used elsewhere too"),
        (lstm(), half_a_gate, "input_gate_bias is absent and input_to_input_weights is given"),
    ],
)
def test_unroll_lstm_refuses_and_leaves_alone(
    model: Model, edit: Callable[[Model], None], reason: str
) -> None:
    edit(model)
    found = not_unrolled(operator(model))
    assert found is not None
    assert reason in found
    before = (kinds(model), [v.name for v in model.graph.values])
    assert not unroll_unidirseqlstm(model.graph)
    assert (kinds(model), [v.name for v in model.graph.values]) == before


def test_a_state_of_explicit_zeros_is_unrolled() -> None:
    model = lstm()
    zeros = np.zeros((3, 4), np.float32)
    operator(model).cell_state.buffer = Buffer(zeros.reshape(-1).view(np.uint8))
    assert not_unrolled(operator(model)) is None
    assert unroll_unidirseqlstm(model.graph)


def test_a_loop_is_named_with_what_unrolls_it() -> None:
    model = Model()
    main, condition, body = (model.add_graph(Graph(name)) for name in ("main", "if", "body"))
    for graph in (condition, body):
        graph.add_input("go", (), TensorType.BOOL)
        graph.outputs = list(graph.inputs)
    x = main.add_input("x", (), TensorType.BOOL)
    loop = While((x,), condition_graph=condition, body_graph=body)
    main.append(loop, "y")
    (warning,) = whole_lstms(main)
    assert warning.startswith("no LSTM to unroll")
    assert LOOPS in warning
    with pytest.raises(UnsupportedError, match="luciole import --unroll"):
        find_function(loop)
