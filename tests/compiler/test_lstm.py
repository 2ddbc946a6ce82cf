"""Long short-term memory in C against LiteRT, run after run: bytes bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.compiler.self_test import random_records, self_test
from luciole.ir import Array, LucioleError, Model, UnsupportedError
from luciole.ir.ops.unidirectional_sequence_lstm import LSTM, UnidirectionalSequenceLSTM
from luciole.ir.recurrent import LSTM_AUXILIARY
from luciole.kernels.portable.calls import PortableContext
from luciole.kernels.recurrent.lstm_in_c import float_lstm as float_lstm_in_c
from luciole.schema.enums import ActivationFunctionType as Act
from tests.compiler_support import COMPILERS, built, needs_compiler, program_of, run_sound
from tests.lstm_support import PARTS, integer_lstm, lstm_shapes
from tests.recurrent_support import layer, outputs_in_litert, sequences
from tests.support import data_path

pytestmark = needs_compiler

VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {"cell_clip": 0.3},
    "no input gate": {"activation": Act.RELU},
    "peepholes": {"time_major": True},
    "normalized": {},
    "projected": {"proj_clip": 0.2},
    "everything": {"cell_clip": 2.0, "proj_clip": 0.5},
    "everything but the input gate": {"activation": Act.RELU6},
}
"""Parts by name, and attributes with each."""


def float_lstm(part: str, **attributes: Any) -> Model:
    shapes = lstm_shapes((*PARTS[part], *LSTM_AUXILIARY))
    order = (6, 3) if attributes.get("time_major") else (3, 6)
    given = {"activation": Act.TANH, **attributes}
    return layer(UnidirectionalSequenceLSTM, {"input": (*order, 5), **shapes}, **given)


def runs_of(model: Model, folder: Path, runs: list[list[Array]], **options: str) -> list[Array]:
    compiled = built(program_of(model, **options), folder)
    names = [value.name for value in model.graph.inputs]
    return [compiled.run(dict(zip(names, run, strict=True)))[0] for run in runs]


@pytest.mark.parametrize("part", VARIANTS)
def test_layers_of_floats_are_those_of_litert(part: str, tmp_path: Path) -> None:
    model = float_lstm(part, **VARIANTS[part])
    runs = sequences(model)
    theirs = outputs_in_litert(model, runs)
    for found, (wanted,) in zip(runs_of(model, tmp_path, runs), theirs, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def byte_sequences(model: Model) -> list[list[Array]]:
    rng, shape = np.random.default_rng(3), model.graph.inputs[0].dims
    return [[rng.integers(-128, 128, shape).astype(np.int8)] for _ in range(3)]


@pytest.mark.parametrize("part", VARIANTS)
def test_layers_of_bytes_are_those_of_litert(part: str, tmp_path: Path) -> None:
    given = {k: v for k, v in VARIANTS[part].items() if k != "activation"}
    model = integer_lstm(UnidirectionalSequenceLSTM, part, **given)
    runs = byte_sequences(model)
    theirs = outputs_in_litert(model, runs)
    for found, (wanted,) in zip(runs_of(model, tmp_path, runs), theirs, strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("arena", ["static", "caller"])
def test_states_last_until_they_are_reset(arena: str, tmp_path: Path) -> None:
    model = integer_lstm(LSTM, "plain")
    name, (x,) = model.graph.inputs[0].name, byte_sequences(model)[0]
    compiled = built(program_of(model, arena=arena), tmp_path)
    first, second = (compiled.run({name: x})[0] for _ in range(2))
    compiled.reset()
    assert (first != second).any()
    np.testing.assert_array_equal(compiled.run({name: x})[0], first)


MAKERS = (integer_lstm, lambda cls, part: float_lstm(part))


@pytest.mark.parametrize(
    ("make", "arena", "compiler"),
    [
        (make, arena, compiler)
        for compiler, kinds in zip(COMPILERS, (MAKERS, reversed(MAKERS)), strict=False)
        for make, arena in zip(kinds, ("static", "caller"), strict=True)
    ],
)
def test_a_program_is_clean_and_passes_its_own_test(
    make: Any, arena: str, compiler: str, tmp_path: Path
) -> None:
    program = program_of(make(UnidirectionalSequenceLSTM, "everything"), arena=arena)
    test = self_test(program, built(program, tmp_path), random_records(program))
    assert run_sound(program, tmp_path, test, compiler) == 0


def test_bytes_of_tables_count_what_states_begin_as() -> None:
    program = program_of(integer_lstm(LSTM, "plain"))
    begun = f"TABLE_BYTES = {program.table_bytes},"
    assert begun in program.header
    assert program.source
    assert program.table_bytes == int(begun.split()[2].rstrip(","))
    assert "void net_reset(struct net_state *state);" in program.header


def test_a_trained_network_gives_the_interpreters_answers(tmp_path: Path) -> None:
    model = luciole.load(data_path("models/mnist_lstm_fp32.tflite"))
    interpreter, name = luciole.Interpreter(model), model.graph.inputs[0].name
    images = np.load(data_path("mnist.npz"))["x_test"][:5].astype(np.float32) / 255
    runs = [[image[None]] for image in images]
    for found, run in zip(runs_of(model, tmp_path, runs), runs, strict=True):
        (wanted,) = interpreter.run({name: run[0]}).values()
        np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-6)


def test_a_state_that_others_use_is_refused() -> None:
    model = float_lstm("plain")
    (op,) = model.graph.ops
    model.graph.outputs.append(op.cell_state)  # type: ignore[attr-defined]
    with pytest.raises(UnsupportedError, match="is a variable that others use"):
        program_of(model)


@pytest.mark.parametrize("name", ["forget_gate_bias", "cell_to_output_weights"])
def test_tables_of_other_shapes_are_refused(name: str) -> None:
    model = float_lstm("everything")
    (op,) = model.graph.ops
    value = op.given_operands()[name]
    value.make_constant(np.zeros(3, np.float32))
    with pytest.raises(LucioleError):
        program_of(model)
    context = PortableContext({v: v.data for v in model.graph.values if v.data is not None})
    with pytest.raises(UnsupportedError, match=r"has a shape that C does not take|same shape"):
        float_lstm_in_c(op, context)  # type: ignore[arg-type]  # it is one


def test_weights_of_bytes_under_floats_are_refused() -> None:
    shapes = {"input": (3, 6, 5), **lstm_shapes((*PARTS["plain"], *LSTM_AUXILIARY))}
    model = layer(UnidirectionalSequenceLSTM, shapes, hybrid=True, activation=Act.TANH)
    with pytest.raises(UnsupportedError, match="is int8: in C, float32 is needed"):
        program_of(model)
