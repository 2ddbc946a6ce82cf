"""Recurrent Keras layers, attention and several inputs are imported by themselves, give what Keras
computes, and run compiled.

Tolerance: 1e-5, with outputs of about 1.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.importers.files import read
from luciole.importers.keras import convert
from luciole.importers.keras.convert import from_keras
from luciole.ir import Array
from luciole.ir.errors import FormatError
from luciole.ir.findings import Severity
from tests.tools.running import call

RNG = np.random.default_rng(3)
TIME, INPUTS = 3, 5
Layers = Callable[[Any], list[Any]]

RECURRENT: dict[str, Layers] = {
    "GRU, reset before": lambda layers: [
        layers.GRU(8, reset_after=False, return_sequences=True),
        layers.SimpleRNN(4),
    ],
    "masked": lambda layers: [
        layers.Masking(),
        layers.Bidirectional(layers.LSTM(4, return_sequences=True)),
        layers.GRU(4),
    ],
    "sequences": lambda layers: [
        layers.Bidirectional(layers.GRU(4, return_sequences=True)),
        layers.LSTM(16),
        layers.Dense(3),
    ],
}
BATCHES = {"GRU, reset before": 1, "masked": 3, "sequences": 1}
"""Of the records that each network takes."""


def sequential(keras: Any, layers: list[Any]) -> Any:
    return keras.Sequential([keras.Input((TIME, INPUTS)), *layers])


def with_two_of_each(keras: Any) -> Any:
    layers = keras.layers
    alpha, beta = keras.Input((4,), name="alpha"), keras.Input((TIME, INPUTS), name="beta")
    joined = layers.Concatenate()([layers.Dense(3)(alpha), layers.LSTM(4)(beta)])
    outputs = {"one": layers.Dense(2)(joined), "two": layers.Dense(3)(joined)}
    return keras.Model({"alpha": alpha, "beta": beta}, outputs)


def normal(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def not_compiled(model: luciole.Model) -> list[str]:
    interpreter = luciole.Interpreter(model)
    interpreter.allocate_tensors()
    steps = interpreter.plan.steps
    return [s.op.kind for s in steps if s.native is None and not s.nothing_to_do]


Imported = Callable[[str], tuple[Any, luciole.Model]]


@pytest.fixture(scope="module")
def imported_once(keras: Any) -> Imported:
    """A model of Keras with one of the layers, and what it is imported as, made once for all tests:
    TensorFlow converts each for seconds.
    """

    @cache
    def make(name: str) -> tuple[Any, luciole.Model]:
        model = sequential(keras, RECURRENT[name](keras.layers))
        return model, from_keras(model, BATCHES[name])

    return make


@pytest.mark.parametrize(("name", "batch"), BATCHES.items())
def test_recurrent_layers_give_what_keras_computes(
    imported_once: Imported, name: str, batch: int
) -> None:
    model, imported = imported_once(name)
    assert imported.graph.inputs[0].shape == (batch, TIME, INPUTS)
    interpreter = luciole.Interpreter(imported)
    for _ in range(2):  # nothing is left over from the run before
        x = normal(batch, TIME, INPUTS)
        x[-1, -2:] = 0  # what a Masking layer leaves out
        (found,) = interpreter.run(x).values()
        np.testing.assert_allclose(found, model(x).numpy(), rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", RECURRENT)
def test_recurrent_layers_run_compiled(imported_once: Imported, name: str) -> None:
    assert not_compiled(imported_once(name)[1]) == []


def test_two_inputs_and_two_outputs_keep_their_names(keras: Any) -> None:
    model = with_two_of_each(keras)
    given = {"alpha": normal(1, 4), "beta": normal(1, TIME, INPUTS)}
    interpreter = luciole.Interpreter(from_keras(model, batch=1))
    found = interpreter.get_signature_runner()(**given)
    for name, wanted in model(given).items():
        np.testing.assert_allclose(found[name], wanted.numpy(), rtol=0, atol=1e-5)


@pytest.mark.parametrize("batch", [None, 2])
def test_inputs_and_outputs_come_in_the_order_of_keras(keras: Any, batch: int | None) -> None:
    """By name, keras_tensor_100 lies before keras_tensor_99, and output_10 before output_2."""
    names = [(f"t{number}", 3 + number) for number in (99, 100, 9)]
    inputs = [keras.Input((width,), name=name) for name, width in names]
    outputs = [keras.layers.Dense(1 + width)(inputs[0]) for width in range(12)]
    model = keras.Model(inputs, outputs)
    imported = from_keras(model, batch)
    graph, (signature,) = imported.graph, imported.signatures
    assert [value.shape for value in graph.inputs] == [(batch, width) for _, width in names]
    assert [value.shape[-1] for value in graph.outputs] == list(range(1, 13))
    assert [name for name, _ in signature.inputs] == [name for name, _ in names]
    assert [name for name, _ in signature.outputs] == model.output_names


def test_outputs_with_names_come_in_the_order_of_keras(keras: Any) -> None:
    given = keras.Input((3,))
    dense = keras.layers.Dense
    imported = from_keras(keras.Model(given, {"y": dense(2)(given), "c": dense(4)(given)}))
    assert [value.shape for value in imported.graph.outputs] == [(None, 4), (None, 2)]


def test_attention_gives_what_keras_computes_and_keeps_its_batch_open(keras: Any) -> None:
    given = keras.Input((TIME, 8))
    model = keras.Model(given, keras.layers.MultiHeadAttention(2, 4)(given, given))
    imported = from_keras(model)
    assert imported.graph.inputs[0].shape == (None, TIME, 8)
    assert not_compiled(imported) == []
    x = normal(4, TIME, 8)
    (found,) = luciole.Interpreter(imported).run(x).values()
    np.testing.assert_allclose(found, model(x).numpy(), rtol=0, atol=1e-5)


@pytest.fixture(scope="module")
def recurrent_file(keras: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("keras") / "recurrent.keras"
    sequential(keras, [keras.layers.SimpleRNN(4)]).save(path)
    return path


def test_import_says_that_the_batch_is_fixed(
    recurrent_file: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """And TensorFlow, which writes to the file itself, nothing."""
    outcome = call(capfd, "import", recurrent_file, "-o", tmp_path / "m.circle")
    assert outcome.code == 0
    assert outcome.err == (
        f"{recurrent_file}: TensorFlow converts it for no open batch size, so it takes 1: "
        "--batch N (or batch=N) for N\n"
    )
    assert luciole.load(tmp_path / "m.circle").graph.inputs[0].shape == (1, TIME, INPUTS)


def test_recurrent_layers_are_converted_once(
    recurrent_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TensorFlow is not asked for an open batch that it would refuse."""
    conversions: list[Any] = []
    canonical = convert._canonical

    def counted(converter: Any) -> luciole.Model:
        conversions.append(converter)
        return canonical(converter)

    monkeypatch.setattr(convert, "_canonical", counted)
    assert luciole.load(recurrent_file).graph.inputs[0].shape == (1, TIME, INPUTS)
    assert len(conversions) == 1


def test_import_takes_a_batch(
    recurrent_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = call(capsys, "import", recurrent_file, "-o", tmp_path / "m.circle", "--batch", "4")
    assert (outcome.code, outcome.err) == (0, "")
    assert luciole.load(tmp_path / "m.circle").graph.inputs[0].shape == (4, TIME, INPUTS)


def test_import_refuses_a_batch_of_nothing(
    recurrent_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = call(capsys, "import", recurrent_file, "-o", tmp_path / "m.circle", "--batch", "0")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == "luciole: error: --batch is 0: it is 1 or more\n"


def test_a_batch_is_given_to_files_of_any_kind(keras: Any, tmp_path: Path) -> None:
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
    luciole.save(from_keras(model), tmp_path / "m.tflite")
    graph = luciole.load(tmp_path / "m.tflite", batch=7).graph
    assert [v.shape for v in (graph.inputs[0], graph.outputs[0])] == [(7, 4), (7, 3)]


def test_a_saved_model_with_an_open_batch_says_what_to_do(keras: Any, tmp_path: Path) -> None:
    model = sequential(keras, [keras.layers.SimpleRNN(4)])
    model.export(tmp_path / "saved", verbose=False)
    with pytest.raises(FormatError, match="an open batch size: import the Keras file instead"):
        luciole.load(tmp_path / "saved")


def test_the_finding_is_a_warning(recurrent_file: Path) -> None:
    (finding,) = read(recurrent_file).findings
    assert (finding.severity, finding.code) == (Severity.WARNING, "BATCH")


def test_layers_of_a_file_are_unrolled_and_can_be_quantized(keras: Any, tmp_path: Path) -> None:
    model = sequential(keras, [keras.layers.Bidirectional(keras.layers.SimpleRNN(4))])
    model.save(tmp_path / "loop.keras")
    imported = luciole.load(tmp_path / "loop.keras", unroll=True)
    kinds = {op.kind for graph in imported.graphs for op in graph.ops}
    assert "WHILE" not in kinds
    x = normal(40, TIME, INPUTS)
    (found,) = luciole.Interpreter(imported).run(x[:1]).values()
    np.testing.assert_allclose(found, model(x[:1]).numpy(), rtol=0, atol=1e-5)
    result = luciole.quantize(imported, x, encode_bits=2)
    assert any(op.kind == "LQ_FULLY_CONNECTED" for op in result.model.graph.ops)
    assert luciole.finetune(result, imported, x, epochs=1).trained


def test_gated_layers_of_a_file_are_unrolled(keras: Any, tmp_path: Path) -> None:
    layers = [keras.layers.LSTM(3, return_sequences=True), keras.layers.GRU(3)]
    model = sequential(keras, layers)
    model.save(tmp_path / "gated.keras")
    imported = luciole.load(tmp_path / "gated.keras", unroll=True)
    assert not {op.kind for op in imported.graph.ops} & {"WHILE", "UNIDIRECTIONAL_SEQUENCE_LSTM"}
    x = normal(41, TIME, INPUTS)[:1]
    (found,) = luciole.Interpreter(imported).run(x).values()
    np.testing.assert_allclose(found, model(x).numpy(), rtol=0, atol=1e-5)


def test_what_has_no_loops_of_keras_is_not_unrolled(keras: Any, tmp_path: Path) -> None:
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
    model.save(tmp_path / "dense.keras")
    with pytest.raises(FormatError, match="no recurrent layer to unroll"):
        luciole.load(tmp_path / "dense.keras", unroll=True)
    luciole.save(from_keras(model), tmp_path / "dense.tflite")
    with pytest.raises(FormatError, match="only recurrent layers of Keras files"):
        luciole.load(tmp_path / "dense.tflite", unroll=True)
    model.export(tmp_path / "saved", verbose=False)
    with pytest.raises(FormatError, match="a SavedModel holds its loops"):
        luciole.load(tmp_path / "saved", unroll=True)
