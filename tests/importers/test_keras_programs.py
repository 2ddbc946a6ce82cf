"""Keras files that hold or name programs are refused before Keras sees them; the others are not."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import luciole
from luciole.importers.keras import convert as keras_importer
from luciole.importers.keras import programs as keras_programs
from luciole.importers.keras.programs import refuse_programs
from luciole.ir import LucioleError
from luciole.ir.errors import FormatError

HINT = "; who trusts the file can load it with Keras and export a SavedModel"
NO_PART = "which is no part of Keras that models are made of"


def layer(class_name: str, module: Any = "keras.layers", /, **config: Any) -> dict[str, Any]:
    """An object as Keras writes it."""
    return {"module": module, "class_name": class_name, "config": config, "registered_name": None}


def function(name: str, module: str) -> dict[str, Any]:
    parts = {"module": module, "config": name, "registered_name": "function"}
    return {"class_name": "function", **parts}


LAMBDA = {"class_name": "__lambda__", "config": {"code": "4wEAAA", "defaults": None}}


def model(*layers: Any) -> dict[str, Any]:
    return layer("Sequential", "keras", name="net", layers=list(layers))


def as_keras(config: Any, folder: Path) -> Path:
    with zipfile.ZipFile(folder / "m.keras", "w") as archive:
        archive.writestr("metadata.json", "{}")
        archive.writestr("config.json", json.dumps(config))
    return folder / "m.keras"


def as_h5(config: Any, folder: Path) -> Path:
    with h5py.File(folder / "m.h5", "w") as file:
        file.attrs["model_config"] = json.dumps(config)
        file.create_group("model_weights")
    return folder / "m.h5"


def as_h5_bytes(config: Any, folder: Path) -> Path:
    with h5py.File(folder / "m.h5", "w") as file:
        file.attrs["model_config"] = np.bytes_(json.dumps(config).encode())
    return folder / "m.h5"


def nobody(name: str) -> bool:
    return False


WRITERS = (as_keras, as_h5, as_h5_bytes)
PROGRAMS = [
    (layer("Lambda", name="l", function=LAMBDA), "a program: 'l' is a Lambda"),
    (layer("Lambda", name="l", function=["4wEA", None, None]), "a program: 'l' is a Lambda"),
    (layer("Lambda", name="l", function=function("relu", "keras.ops")), "'l' is a Lambda"),
    ({"class_name": "Lambda", "config": {"name": "old"}}, "a program: 'old' is a Lambda"),
    (layer("Lambda", "keras.src.layers.core.lambda_layer", name="l"), "'l' is a Lambda"),
    (layer("TimeDistributed", layer=layer("Lambda", name="in")), "'in' is a Lambda"),
    (layer("Bidirectional", layer=layer("RNN", cell=[layer("Lambda")])), "'Lambda' is a Lambda"),
    (model(model(layer("Lambda", name="deep"))), "a program: 'deep' is a Lambda"),
    (layer("Dense", activation=LAMBDA), "a program: '__lambda__' is a __lambda__"),
    (layer("TFSMLayer", filepath="/tmp/x", name="t"), "a program: 't' is a TFSMLayer"),
    (layer("TorchModuleWrapper", name="t", module="gAJ"), "'t' is a TorchModuleWrapper"),
    (layer("JaxLayer", name="j"), "a program: 'j' is a JaxLayer"),
    (layer("Dense", activation=function("system", "os")), f"'system' of 'os', {NO_PART}"),
    (layer("Dense", activation=function("get_file", "keras.utils")), "'get_file' of 'keras.utils'"),
    (layer("Dense", activation=function("load_model", "keras.saving")), "'load_model' of 'keras.s"),
    (layer("enable_unsafe_deserialization", "keras.config"), "of 'keras.config'"),
    (layer("Popen", "subprocess"), f"'Popen' of 'subprocess', {NO_PART}"),
    (layer("Mine", "mine.layers"), "'Mine' of 'mine.layers'"),
    (layer("X", "keras_evil"), "'X' of 'keras_evil'"),
    (layer("X", ["keras.layers"]), "'X' of ['keras.layers']"),
    ({"class_name": ["Lambda"], "config": {}}, "what is called ['Lambda']"),
    ({"kwargs": {"inputs": layer("Lambda", name="arg")}}, "'arg' is a Lambda"),
]


@pytest.mark.parametrize(
    ("write", "inner", "message"),
    [
        *((as_keras, *program) for program in PROGRAMS),
        *((write, *program) for write in (as_h5, as_h5_bytes) for program in PROGRAMS[::9]),
    ],
)
def test_loading_refuses_a_program_wherever_it_stands(
    write: Any, inner: Any, message: str, tmp_path: Path
) -> None:
    path = write(model(layer("InputLayer"), inner), tmp_path)
    with pytest.raises(FormatError) as raised:
        refuse_programs(path, nobody)
    said = str(raised.value)
    assert said.startswith(f"{path.name}: Keras would run ")
    assert said.endswith(HINT)
    assert message in said


@pytest.mark.parametrize("write", WRITERS)
def test_what_models_are_made_of_is_no_program(write: Any, tmp_path: Path) -> None:
    config = model(
        layer("Dense", activation="relu", dtype=layer("DTypePolicy", "keras", name="float32")),
        layer("Functional", "keras.src.models.functional", layers=[]),
        layer("Add", "keras.src.ops.numpy"),
        layer("ThresholdedReLU", "keras._legacy.layers"),
        layer("Dense", kernel_initializer=layer("GlorotUniform", "keras.initializers")),
        layer("Dense", activation=function("relu", "builtins")),
        {"class_name": "Dense", "config": {"name": "Lambda"}},
        {"class_name": "__keras_tensor__", "config": {"shape": [None, 3]}},
    )
    refuse_programs(write(config, tmp_path), nobody)


@pytest.mark.parametrize("write", WRITERS)
def test_what_the_user_registered_is_the_users(write: Any, tmp_path: Path) -> None:
    mine = layer("Mine", "mine.layers") | {"registered_name": "my>Mine"}
    config = model(mine, layer("Dense", activation=function("curve", "mine")))
    path = write(config, tmp_path)
    refuse_programs(path, {"my>Mine", "curve"}.__contains__)
    with pytest.raises(FormatError, match="'curve' of 'mine'"):
        refuse_programs(path, {"my>Mine"}.__contains__)
    with pytest.raises(FormatError, match=r"'Mine' of 'mine\.layers'"):
        refuse_programs(path, {"curve"}.__contains__)


# ------------------------------------------------------------------ files that are no configuration
def test_loading_refuses_an_archive_that_unpacks_to_much_more(tmp_path: Path) -> None:
    path = as_keras(model(), tmp_path)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model.weights.h5", bytes(300 << 20))
    with pytest.raises(FormatError, match=r"m\.keras: unpacks to 314,572,9.. bytes, at most 268,4"):
        refuse_programs(path, nobody)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_loading_refuses_archives_that_unpack_without_a_bound(method: int, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "m.keras", "w", method) as archive:
        archive.writestr("config.json", "{}")
    message = rf"m\.keras: is packed with method {method}, 0 and 8 \(deflate\) are read$"
    with pytest.raises(FormatError, match=message):
        refuse_programs(tmp_path / "m.keras", nobody)


def test_loading_refuses_an_encrypted_configuration(tmp_path: Path) -> None:
    path = as_keras(model(), tmp_path)
    raw = bytearray(path.read_bytes())
    place = raw.rindex(b"PK\1\2")
    raw[place + 8] |= 1
    path.write_bytes(raw)
    with pytest.raises(FormatError, match=r"configuration cannot be read: .* (encrypted|flag)"):
        refuse_programs(path, nobody)


def test_loading_refuses_a_long_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keras_programs, "_LONGEST_CONFIG", 100)
    path = as_keras(model(layer("Dense")), tmp_path)
    with pytest.raises(FormatError, match="configuration is longer than 100 bytes"):
        refuse_programs(path, nobody)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "its configuration cannot be read: Expecting property name"),
        ("[" * 100_000, "its configuration cannot be read: maximum recursion depth"),
        ("\xff", "its configuration cannot be read: "),
    ],
)
def test_loading_refuses_a_configuration_that_is_no_json(
    text: str, message: str, tmp_path: Path
) -> None:
    with zipfile.ZipFile(tmp_path / "m.keras", "w") as archive:
        archive.writestr("config.json", text)
    with pytest.raises(FormatError, match=rf"m\.keras: {message}"):
        refuse_programs(tmp_path / "m.keras", nobody)


def test_loading_refuses_files_without_a_configuration(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "m.keras", "w") as archive:
        archive.writestr("other.json", "{}")
    with pytest.raises(FormatError, match=r"configuration cannot be read: .*config\.json"):
        refuse_programs(tmp_path / "m.keras", nobody)
    with h5py.File(tmp_path / "m.h5", "w") as file:
        file["x"] = 3
    with pytest.raises(FormatError, match=r"m\.h5: it holds no model, weights at the m"):
        refuse_programs(tmp_path / "m.h5", nobody)


@pytest.mark.parametrize("content", [3, np.zeros(5), np.array([b"{}", b"{}"])])
def test_loading_refuses_a_configuration_that_is_no_text(content: Any, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "m.h5", "w") as file:
        file.attrs["model_config"] = content
    with pytest.raises(FormatError, match=r"m\.h5: attribute 'model_config' is no text$"):
        refuse_programs(tmp_path / "m.h5", nobody)


# ------------------------------------------------------------------------------------ with Keras
@pytest.mark.parametrize("ending", ["keras", "h5"])
def test_loading_refuses_a_lambda_layer_before_it_runs(
    keras: Any, ending: str, tmp_path: Path
) -> None:
    mark = tmp_path / "it ran"
    code = f"lambda x: (x, open({str(mark)!r}, 'w').close())[0]"
    made = keras.Sequential([keras.Input((3,)), keras.layers.Lambda(eval(code), name="bad")])
    made.save(tmp_path / f"m.{ending}")
    mark.unlink()
    with pytest.raises(FormatError, match="Keras would run a program: 'bad' is a Lambda"):
        luciole.load(tmp_path / f"m.{ending}")
    assert not mark.exists()


def test_a_layer_that_the_user_registered_is_loaded(keras: Any, tmp_path: Path) -> None:
    @keras.utils.register_keras_serializable(package="ours")
    class Twice(keras.layers.Layer):  # type: ignore[misc]  # a class at run time
        def call(self, x: Any) -> Any:
            return x * 2

    keras.Sequential([keras.Input((3,)), Twice()]).save(tmp_path / "m.keras")
    x = np.array([[1, -2, 3]], np.float32)
    loaded = luciole.Interpreter(luciole.load(tmp_path / "m.keras"))
    np.testing.assert_array_equal(next(iter(loaded.run(x).values())), 2 * x)


@pytest.mark.parametrize("version", ["2.15.0", "3.8.0", "3.15.0", "3.9"])
def test_loading_refuses_an_old_keras(
    keras: Any, version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = as_keras(model(), tmp_path)
    monkeypatch.setattr(keras, "__version__", version)
    with pytest.raises(LucioleError) as raised:
        luciole.load(path)
    assert str(raised.value) == (
        f"m.keras: Keras {version} may run programs in files that it loads: "
        "pip install 'keras>=3.15.1'"
    )


def test_the_extra_asks_for_the_same_keras() -> None:
    wanted = ".".join(map(str, keras_importer.OLDEST_KERAS))
    setup = (Path(__file__).parents[2] / "setup.cfg").read_text()
    assert setup.count(f"keras >= {wanted}\n") == setup.count("tensorflow-cpu >=") == 1
