"""Programs with models that take and give texts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.ir import Array, Graph, Model, TensorType, Value
from luciole.ir.ops.cast import Cast
from luciole.ir.ops.comparisons import Equal
from luciole.ir.ops.expand_dims import ExpandDims
from luciole.ir.strings import array_of
from luciole.tools.data import DataError, load_data
from tests.tools.running import call

Capture = pytest.CaptureFixture[str]
KNOWN = array_of([b"yes", "né".encode()], (2,))
WORDS = np.array([["yes", "no"], ["né", "né"], ["", "yes"]])


def model() -> Model:
    """Which of two words are the known ones, as numbers; and the words again."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("words", (None, 2), TensorType.STRING)
    same = graph.append(Equal(x, graph.add_constant("known", KNOWN)), "same").output
    cast = Cast(same, in_data_type=TensorType.BOOL, out_data_type=TensorType.FLOAT32)
    numbers = graph.add_value(Value("y", TensorType.FLOAT32, (None, 2)))
    axis = graph.add_constant("axis", np.array(1, np.int32))
    again = graph.append(ExpandDims(x, axis), "again").output
    graph.append(cast, results=[numbers])
    graph.outputs = [numbers, again]
    return model


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with the model and its words."""
    monkeypatch.chdir(tmp_path)
    Path("m.tflite").write_bytes(to_bytes(model(), "tflite"))
    luciole.save(model(), "m.circle")
    np.save("words.npy", WORDS)
    return tmp_path


@pytest.mark.parametrize(
    "stored", [WORDS, WORDS.astype(">U3"), np.char.encode(WORDS, "utf-8"), np.asfortranarray(WORDS)]
)
def test_files_hold_texts_of_numpys_types(tmp_path: Path, stored: Array) -> None:
    np.savez(tmp_path / "x.npz", words=stored)
    data = load_data(str(tmp_path / "x.npz"), model().graph)
    wanted = [[text.encode() for text in row] for row in WORDS.tolist()]
    assert data.records["words"].tolist() == wanted
    found = luciole.Interpreter(model()).run(data.records["words"])
    np.testing.assert_array_equal(found["y"], [[1, 0], [0, 1], [0, 0]])


def test_load_data_refuses_numbers_objects_and_raw_bytes_for_texts(tmp_path: Path) -> None:
    path, graph = tmp_path / "x.npy", model().graph
    np.save(path, np.zeros((3, 2), np.float32))
    with pytest.raises(DataError, match=r"'words' takes texts \(NumPy's types S and U\), found f"):
        load_data(str(path), graph)
    np.save(path, WORDS.astype(object))
    with pytest.raises(DataError, match="holds Python objects"):
        load_data(str(path), graph)
    np.save(path, np.array([["a", "\udcff"]]))
    with pytest.raises(DataError, match="a text in the array has no UTF-8"):
        load_data(str(path), graph)
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "0.bin").write_bytes(bytes(16))
    with pytest.raises(DataError, match=r"takes texts: raw bytes are none, use \.npy or"):
        load_data(str(tmp_path / "raw"), graph)


def test_diff_compares_numbers_and_leaves_texts_out(capsys: Capture, texts: Path) -> None:
    outcome = call(capsys, "diff", "m.tflite", "m.circle", "--data", "words.npy", "--json")
    found = json.loads(outcome.out)
    assert outcome.err == "data: words: texts [3,2], of 0 to 3 bytes\n"
    assert [output["name"] for output in found["outputs"]] == ["y"]
    assert found["outputs"][0]["mse"] == 0


def test_diff_refuses_models_that_give_texts_alone(capsys: Capture, texts: Path) -> None:
    alone = model()
    alone.graph.outputs = alone.graph.outputs[1:]
    luciole.save(alone, "alone.circle")
    outcome = call(capsys, "diff", "alone.circle", "alone.circle", "--data", "words.npy")
    assert outcome.error() == "all outputs are texts: there is no distance between them"


def test_bench_runs_texts_beside_litert(capsys: Capture, texts: Path) -> None:
    argv = ("bench", "m.tflite", "--against", "litert:m.tflite", "--max-secs=0.1", "--min-secs=0")
    for data in ((), ("--data", "words.npy")):
        outcome = call(capsys, *argv, *data, "--num-runs", "3")
        assert outcome.code == 0, outcome.err
        assert "'words' is of texts" in outcome.out
        times = [line for line in outcome.out.splitlines() if line.startswith("litert m.tflite")]
        assert times[-1].split()[-1] == "0", "outputs differ by"


def test_dump_shows_inputs_and_constants(capsys: Capture, texts: Path) -> None:
    for file in ("m.tflite", "m.circle"):
        assert call(capsys, "dump", file, "--tensor", "words").out == "words: STRING [?,2]\n"
        shown = json.loads(call(capsys, "dump", file, "--tensor", "known", "--json").out)
        assert shown["values"] == ["yes", "né"]
        tensors = json.loads(call(capsys, "dump", file, "--json").out)["subgraphs"][0]["tensors"]
        assert {t["name"]: t["dtype"] for t in tensors}["words"] == "STRING"


def test_quantize_refuses_a_model_of_texts(capsys: Capture, texts: Path) -> None:
    argv = ("quantize", "m.tflite", "-o", "q.tflite", "--scheme", "int8", "--data", "words.npy")
    outcome = call(capsys, *argv)
    assert "nothing to quantize" in outcome.error()
    assert not Path("q.tflite").exists()
