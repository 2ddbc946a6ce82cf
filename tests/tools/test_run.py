"""``luciole run`` and ``luciole.run``: what a model computes of records, as files and as arrays."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.interpreter import InputError
from luciole.ir import Array, Graph, Model, TensorType
from luciole.ir.ops.concatenation import Concatenation
from luciole.ir.ops.unidirectional_sequence_lstm import UnidirectionalSequenceLSTM
from luciole.ir.recurrent import LSTM_AUXILIARY
from luciole.schema.enums import ActivationFunctionType
from luciole.tools.data import load_data
from tests.lstm_support import PLAIN, lstm_shapes
from tests.networks import network, random, two_outputs
from tests.recurrent_support import layer
from tests.support import data_path, litert
from tests.tools.running import call

Capture = pytest.CaptureFixture[str]


def test_outputs_are_written_as_they_are_computed(capsys: Capture, folder: Path) -> None:
    x = np.load("test.npz")["x_test"]
    argv = ("run", "model.circle", "--data", "test.npz:x_test")
    outcome = call(capsys, *argv, "-o", "out.npz")
    assert outcome.code == 0
    assert outcome.out.startswith(f"out.npz: {len(x)} records\nfc2: float32 [{len(x)},4], min ")
    single = [luciole.Interpreter("model.circle").run(row[None])["fc2"][0] for row in x]
    computed = np.load("out.npz")["fc2"]
    np.testing.assert_allclose(computed, single, rtol=1e-6, atol=1e-6)
    assert call(capsys, *argv, "-o", "out.npy", "--batch", "1").code == 0
    np.testing.assert_array_equal(np.load("out.npy"), single)
    content = json.loads(call(capsys, *argv, "-o", "out.npy", "--limit", "3", "--json").out)
    told = {"fc2": {"dtype": "float32", "shape": [3, 4]}}
    assert content == {"output": "out.npy", "records": 3, "results": told}


@pytest.mark.parametrize("extension", ["h5", "raw", "bin", "npz"])
def test_what_is_written_can_be_read_as_data(capsys: Capture, folder: Path, extension: str) -> None:
    luciole.save(two_outputs(), "two.circle")
    np.save("x.npy", random(3, 5, 20))
    assert call(capsys, "run", "two.circle", "--data", "x.npy", "-o", f"o.{extension}").code == 0
    reader = Graph("reader")
    for value in two_outputs().graph.outputs:
        reader.add_input(value.name, value.shape)
    read = load_data(f"o.{extension}", reader).records
    computed = luciole.run("two.circle", np.load("x.npy"))
    assert list(read) == list(computed)
    for name, array in computed.items():
        np.testing.assert_array_equal(read[name], array)


def test_any_tensor_can_be_asked_for(capsys: Capture, folder: Path) -> None:
    argv = ("run", "model.circle", "--data", "train.npy", "-o", "out.npz")
    assert call(capsys, *argv, "--output", "act1", "--output", "b").code == 0
    written, x = np.load("out.npz"), load_data("train.npy", network().graph).records["x"]
    assert written.files == ["act1", "b"]
    interpreter = luciole.Interpreter("model.circle", keep_tensors=True)
    interpreter.run(x[:1])
    names = [v.name for v in interpreter.graph.values]
    alone = interpreter.get_tensor(names.index("act1"))
    np.testing.assert_allclose(written["act1"][:1], alone, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(written["b"], luciole.run("model.circle", x)["fc2"])


def test_signatures_name_what_comes_out_of_what_came_in_by_them() -> None:
    assert list(luciole.run(network(), {"a": random(1, 3, 20)})) == ["b"]
    assert list(luciole.run(network(), {"x": random(1, 3, 20)})) == ["fc2"]


def recurrent() -> Model:
    """An LSTM over two sequences side by side."""
    shapes = {"input": (1, 6, 5), **lstm_shapes((*PLAIN, *LSTM_AUXILIARY), batch=1)}
    model = layer(UnidirectionalSequenceLSTM, shapes, activation=ActivationFunctionType.TANH)
    graph = model.graph
    both, lstm = graph.inputs[0], graph.ops[0]
    left, right = (graph.add_input(name, (1, 6, n)) for name, n in (("left", 3), ("right", 2)))
    joined = graph.insert_before(lstm, Concatenation((left, right), axis=2), "joined").output
    both.replace_with(joined)
    graph.inputs = [left, right]
    graph.remove_value(both)
    return model


def test_a_recurrent_model_with_two_inputs_begins_afresh_for_each_record(
    capsys: Capture, folder: Path
) -> None:
    model = recurrent()
    luciole.save(model, "lstm.tflite")
    records = {"left": random(1, 4, 6, 3), "right": random(2, 4, 6, 2)}
    np.savez("x.npz", left=records["left"], right=records["right"])
    assert call(capsys, "run", "lstm.tflite", "--data", "x.npz", "-o", "y.npy").code == 0
    computed = np.load("y.npy")
    for number, row in enumerate(computed):
        inputs = [array[number : number + 1] for array in records.values()]
        np.testing.assert_allclose(row, litert(to_bytes(model, "tflite"), inputs)[0][0], atol=1e-6)


def test_integers_are_those_of_litert(capsys: Capture, folder: Path) -> None:
    path = data_path("models/resnet8_int8.tflite")
    images: Array = np.load(data_path("cifar10_subset.npz"))["x_test"][:4]
    np.save("x.npy", images)
    assert call(capsys, "run", path, "--data", "x.npy", "-o", "y.npy").code == 0
    computed, codes = np.load("y.npy"), (images.astype(np.int16) - 128).astype(np.int8)
    assert computed.dtype == np.int8
    for number, row in enumerate(computed):
        (theirs,) = litert(path.read_bytes(), [codes[number : number + 1]])
        np.testing.assert_array_equal(row, theirs[0])
    assert call(capsys, "run", path, "--data", "x.npy", "-o", "y.h5").code == 0
    reader = Graph("reader")
    reader.add_input("it", (1, 10), TensorType.INT8)
    np.testing.assert_array_equal(load_data("y.h5", reader).records["it"], computed)


def test_run_refuses_what_does_not_go_together(capsys: Capture, folder: Path) -> None:
    argv = ("run", "model.circle", "--data", "test.npz:x_test", "-o")
    assert "written as .npz, .npy, .h5, .hdf5, .raw or .bin" in call(capsys, *argv, "o.csv").error(
        2
    )
    assert "--batch is 0" in call(capsys, *argv, "o.npy", "--batch", "0").error(2)
    assert "no tensor is called 'fc': did you mean 'fc2'?" in call(
        capsys, *argv, "o.npy", "--output", "fc"
    ).error(1)
    assert "named twice" in call(
        capsys, "run", "model.circle", "--data", "train.hdf5", "-o", "train.hdf5"
    ).error(2)
    nameless = call(capsys, "run", "model.circle", "--data", "train.hdf5", "-o", "each:").error(2)
    assert nameless == "each: needs a prefix of names: each:PREFIX"
    luciole.save(two_outputs(), "two.circle")
    np.save("x.npy", random(3, 5, 20))
    refusal = call(capsys, "run", "two.circle", "--data", "x.npy", "-o", "y.npy").error(2)
    assert "a .npy file holds one array, there are 2" in refusal
    Path("x.raw").write_bytes(b"\1" * 81)
    refusal = call(capsys, "run", "two.circle", "--data", "x.raw", "-o", "y.npz").error(1)
    assert refusal == "x.raw: holds 81 bytes, no whole number of records of 80 bytes"
    assert not Path("y.npz").exists()


def test_run_refuses_a_batch_that_no_axis_counts() -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (2, 3), TensorType.FLOAT32)
    graph.outputs = [graph.append(Concatenation((x, x), axis=0), "y").output]
    records = random(1, 4, 2, 3)
    np.testing.assert_array_equal(luciole.run(model, records)["y"][:, :2], records)
    with pytest.raises(InputError, match=r"^batch is 2, but 'x' \[2,3\] has no first axis of 1"):
        luciole.run(model, records, batch=2)
