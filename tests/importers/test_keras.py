"""Keras models in every form that people keep them in give what Keras computes.

Tolerance: 1e-5, with outputs of about 1.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.importers.keras.convert import from_keras, from_live
from luciole.ir import Array, LucioleError
from luciole.ir.analysis.origins import origins
from luciole.ir.analysis.weights import has_weights
from luciole.ir.errors import FormatError
from luciole.ir.names import short_names
from tests.tools.running import spawn

RNG = np.random.default_rng(8)
Write = Callable[[Any, Path], Path]


@pytest.fixture(scope="module")
def dense(keras: Any) -> Any:
    layers = keras.layers
    return keras.Sequential(
        [keras.Input((12,)), layers.Dense(9, "tanh"), layers.Dense(4, "softmax")], name="tiny"
    )


@pytest.fixture(scope="module")
def imported(dense: Any) -> luciole.Model:
    return from_keras(dense)


@pytest.fixture(scope="module")
def convolution(keras: Any) -> Any:
    """Every variable random, so that a batch normalization does something."""
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((8, 8, 2)),
            layers.Conv2D(3, 3, padding="same", activation="relu"),
            layers.BatchNormalization(),
            layers.DepthwiseConv2D(3, strides=2),
            layers.ReLU(6.0),
            layers.GlobalAveragePooling2D(),
            layers.Dense(5),
        ]
    )
    model.set_weights([RNG.uniform(0.1, 0.9, w.shape) for w in model.get_weights()])
    return model


def as_keras(model: Any, folder: Path) -> Path:
    model.save(folder / "m.keras")
    return folder / "m.keras"


def as_h5(model: Any, folder: Path) -> Path:
    model.save(folder / "m.h5")
    return folder / "m.h5"


def as_saved_model(model: Any, folder: Path) -> Path:
    model.export(folder / "saved", verbose=False)
    return folder / "saved"


def as_keras_without_its_ending(model: Any, folder: Path) -> Path:
    return as_keras(model, folder).rename(folder / "model")


def as_h5_with_another_ending(model: Any, folder: Path) -> Path:
    return as_h5(model, folder).rename(folder / "model.hdf5")


def check(imported: luciole.Model, model: Any, x: Array) -> None:
    """Open batch size, the same numbers."""
    (given,) = imported.graph.inputs
    assert given.shape == (None, *x.shape[1:])
    for rows in (1, len(x)):
        found = next(iter(luciole.Interpreter(imported).run(x[:rows]).values()))
        wanted = model(x[:rows]).numpy()
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    "write", [as_keras, as_saved_model, as_keras_without_its_ending, as_h5_with_another_ending]
)
def test_files_give_what_keras_computes(dense: Any, tmp_path: Path, write: Write) -> None:
    x = RNG.normal(size=(5, 12)).astype(np.float32)
    check(luciole.load(write(dense, tmp_path)), dense, x)


def test_a_live_model_gives_what_keras_computes(dense: Any, imported: luciole.Model) -> None:
    check(imported, dense, RNG.normal(size=(5, 12)).astype(np.float32))


def test_convolutions_give_what_keras_computes(convolution: Any) -> None:
    check(from_keras(convolution), convolution, RNG.random((3, 8, 8, 2), np.float32))


def test_dilated_convolutions_are_operators_of_their_own(keras: Any) -> None:
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((12, 12, 3)),
            layers.Conv2D(4, 3, padding="same", dilation_rate=2, activation="relu"),
            layers.DepthwiseConv2D(3, padding="same", dilation_rate=3),
            layers.Conv2D(2, 3, dilation_rate=2),
        ]
    )
    imported = from_keras(model)
    kinds = [op.kind for op in imported.graph.ops]
    assert not [kind for kind in kinds if "SPACE" in kind]
    check(imported, model, RNG.uniform(-1, 1, (2, 12, 12, 3)).astype(np.float32))


def test_names_are_those_that_keras_has(keras: Any, tmp_path: Path) -> None:
    """Of layers that are called like the scopes of others, too; and of files with one signature."""
    layers = keras.layers
    x = keras.Input((8, 8, 2), name="image")
    y = layers.Conv2D(3, 3, activation="relu", name="conv")(x)
    y = layers.Conv2D(3, 3, name="conv_1")(y)
    y = layers.Dense(4, name="hidden1")(layers.GlobalAveragePooling2D(name="mean")(y))
    model = keras.Model(x, [layers.Softmax(name="chances")(y), layers.Dense(2, name="side")(y)])
    imported = luciole.load(model)
    graph = imported.graph
    assert [v.name for v in (*graph.inputs, *graph.outputs)] == ["image", "chances", "side"]
    (signature,) = imported.signatures
    assert [name for name, _ in signature.outputs] == ["chances", "side"]
    results = [op.results[0].name for op in graph.ops]
    parts = [name.split("/")[0] for name in results]
    assert parts == ["conv", "conv_1", "mean", "hidden1", "chances", "side"]
    answers = luciole.Interpreter(imported).run({"image": np.zeros((1, 8, 8, 2), np.float32)})
    assert list(answers) == ["chances", "side"]
    saved = luciole.load(as_saved_model(model, tmp_path)).graph
    assert {v.name for v in (*saved.inputs, *saved.outputs)} == {"image", "output_0", "output_1"}


def test_fused_activations_leave_layers_their_names(keras: Any) -> None:
    layers = keras.layers
    x = keras.Input((6, 6, 2))
    y = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(3, 3, name="stem")(x)))
    y = layers.Activation("relu")(layers.DepthwiseConv2D(3, name="deep")(y))
    y = layers.ReLU(6.0)(layers.Dense(4, name="hidden")(layers.Flatten()(y)))
    graph = luciole.load(keras.Model(x, layers.Dense(2, name="head")(y))).graph
    named = [op.name for op in graph.ops if has_weights(op)]
    assert [name.split("/")[0] for name in named] == ["stem", "deep", "hidden", "head"]
    assert list(short_names(named).values()) == ["stem", "deep", "hidden", "head"]


def test_operators_come_from_layers(keras: Any) -> None:
    """Also from those of a model within the model, and from those that leave no operator."""
    layers = keras.layers
    inner = keras.Sequential([layers.Dense(4, name="hidden"), layers.Dropout(0.1)], name="inner")
    x = keras.Input((6, 2))
    y = layers.ReLU(name="relu")(layers.BatchNormalization(name="norm")(inner(x)))
    imported = from_live(keras.Model(x, layers.Dense(2, name="head")(y)), batch=1)
    nodes, behind = imported.nodes, origins(imported.model.graph, imported.nodes)
    names = ["hidden", "dropout", "norm", "relu", "head"]
    assert [node.name.partition("_")[0] for node in nodes] == names
    assert nodes[0].kind == "Dense"
    assert set().union(*behind.values()) == set(range(len(nodes)))
    op = next(op for op in imported.model.graph.ops if "hidden" in op.name and has_weights(op))
    assert {0} <= set(behind[op]) <= {0, 1, 2, 3}


def test_the_output_of_layers_in_a_row_is_called_after_the_last(
    dense: Any, imported: luciole.Model
) -> None:
    assert [v.name for v in imported.graph.outputs] == [dense.layers[-1].name]


def test_a_live_model_refuses_an_example(dense: Any) -> None:
    with pytest.raises(LucioleError, match="a Keras model has its shapes: no example goes with it"):
        luciole.load(dense, RNG.normal(size=(1, 12)))


def test_a_live_model_refuses_to_be_read_without_inputs(keras: Any, tmp_path: Path) -> None:
    class Plain(keras.Model):  # type: ignore[misc]  # a class at run time
        def call(self, x: Any) -> Any:
            return x

    for model in (keras.Sequential([keras.layers.Dense(3)]), Plain()):
        with pytest.raises(FormatError, match="does not know its inputs: begin it with"):
            luciole.load(model)


def test_a_live_model_refuses_layers_that_tensorflow_does_not_convert(keras: Any) -> None:
    class Failing(keras.layers.Layer):  # type: ignore[misc]  # a class at run time
        fails = False

        def call(self, x: Any) -> Any:
            if self.fails:
                raise RuntimeError("the layer fails")
            return x

    model = keras.Sequential([keras.Input((3,)), Failing()], name="net")
    Failing.fails = True
    with pytest.raises(FormatError, match="the Keras model 'net': TensorFlow cannot convert it: "):
        luciole.load(model)


def test_load_refuses_weights_alone(dense: Any, tmp_path: Path) -> None:
    dense.save_weights(tmp_path / "net.weights.h5")
    sentence = "net.weights.h5: it holds no model, weights at the most: model.save writes both"
    with pytest.raises(FormatError, match=sentence):
        luciole.load(tmp_path / "net.weights.h5")


def test_an_imported_model_is_quantized_and_saved(
    dense: Any, imported: luciole.Model, tmp_path: Path
) -> None:
    x = RNG.normal(size=(200, 12)).astype(np.float32)
    result = luciole.quantize(imported, x, encode_bits=4)
    assert [layer.skipped for layer in result.report.layers] == [None, None]
    luciole.save(result.model, tmp_path / "m.circle")
    found = next(iter(luciole.Interpreter(tmp_path / "m.circle").run(x).values()))
    assert np.mean(found.argmax(1) == dense(x).numpy().argmax(1)) > 0.8


def test_nothing_is_printed(dense: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = as_keras(dense, tmp_path)
    capfd.readouterr()
    luciole.load(path)
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_json_is_all_that_import_prints(dense: Any, tmp_path: Path) -> None:
    outcome = spawn("import", as_keras(dense, tmp_path), "-o", tmp_path / "m.circle", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    kinds = {"FULLY_CONNECTED": 2, "TANH": 1, "SOFTMAX": 1}
    assert json.loads(outcome.out)["operators"] == kinds


@pytest.mark.usefixtures("imported")
def test_tensorflow_still_speaks_to_its_user_afterwards() -> None:
    """Its loggers hold no stream that is closed by now."""
    names = ("tensorflow", "absl", "keras")
    handlers = [h for name in names for h in logging.getLogger(name).handlers]
    streams = [h.stream for h in handlers if isinstance(h, logging.StreamHandler)]
    assert not any(stream.closed for stream in streams)


def test_load_refuses_a_folder_that_is_no_saved_model(tmp_path: Path) -> None:
    sentence = "this folder is no SavedModel (it has no saved_model.pb)"
    with pytest.raises(FormatError) as raised:
        luciole.load(tmp_path)
    assert str(raised.value) == f"{tmp_path}: {sentence}"


@pytest.mark.parametrize(
    ("write", "why"),
    [
        (as_keras, "its configuration cannot be read: File is not a zip file"),
        (as_h5, "the file is damaged or cannot be read: Unable to synchronously open file (trunc"),
        (as_saved_model, "TensorFlow cannot convert it: "),
    ],
)
def test_load_refuses_damaged_files(
    dense: Any, keras: Any, tmp_path: Path, write: Write, why: str
) -> None:
    path = write(dense, tmp_path)
    file = path / "saved_model.pb" if path.is_dir() else path
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    with pytest.raises(FormatError) as raised:
        luciole.load(path)
    assert str(raised.value).startswith(f"{path.name}: {why}")
    assert "\n" not in str(raised.value)


def test_load_refuses_layers_that_are_not_kerass_own(keras: Any, tmp_path: Path) -> None:
    class Strange(keras.layers.Layer):  # type: ignore[misc]  # a class at run time
        def call(self, x: Any) -> Any:
            return x * 2

    as_keras(keras.Sequential([keras.Input((3,)), Strange()]), tmp_path)
    sentence = (
        r"m\.keras: Keras would run 'Strange' of '.*test_keras', which is no part of Keras that "
        r"models are made of; who trusts the file can load it with Keras and export a SavedModel$"
    )
    with pytest.raises(FormatError, match=sentence):
        luciole.load(tmp_path / "m.keras")
