"""``luciole extract``, ``split``, ``cut`` and ``resize``: files in, files out, and what is said."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import luciole
from tests.surgery.networks import pixels, residual
from tests.tools.running import call, left_behind

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with a network."""
    monkeypatch.chdir(tmp_path)
    luciole.save(residual(), "net.tflite")
    return tmp_path


def test_a_part_is_written_and_told(capsys: Capture, net: Path) -> None:
    argv = ("extract", "net.tflite", "-o", "part.circle", "--number", "1-2,3")
    outcome = call(capsys, *argv)
    size = Path("part.circle").stat().st_size
    lines = outcome.out.splitlines()
    assert lines[0] == f"part.circle: {size / 1000:.1f} KB, 3 operators"
    assert lines[1:] == ["takes conv: FLOAT32 [1,8,8,4]", "gives sum: FLOAT32 [1,4,4,4]"]
    content = json.loads(call(capsys, *argv, "--json").out)
    assert content["operators"] == 3
    assert content["outputs"] == [{"name": "sum", "dtype": "FLOAT32", "shape": [1, 4, 4, 4]}]
    assert call(capsys, "verify", "part.circle").code == 0


def test_parts_run_as_a_model(capsys: Capture, net: Path) -> None:
    np.save("x.npy", pixels(5))
    argv = ("split", "net.tflite", "-o", "net.conn.json", "--at", "conv", "--at", "sum")
    assert call(capsys, *argv).out.startswith("net.conn.json: 3 parts\nnet.1.tflite: 1 operators\n")
    whole = json.loads(Path("net.conn.json").read_text())
    assert whole["source"] == {"file": "net.tflite", "inputs": ["image"], "outputs": ["logits"]}
    assert whole["parts"][1] == {"file": "net.2.tflite", "inputs": ["conv"], "outputs": ["sum"]}
    for model, output in (("net.tflite", "whole.npz"), ("net.conn.json", "parts.npz")):
        assert call(capsys, "run", model, "--data", "x.npy", "-o", output).code == 0
    np.testing.assert_array_equal(np.load("parts.npz")["logits"], np.load("whole.npz")["logits"])


def test_ends_and_shapes_are_changed(capsys: Capture, net: Path) -> None:
    argv = ("cut", "net.tflite", "-o", "cut.tflite", "--input", "pool", "--output", "sum")
    assert call(capsys, *argv).code == 0
    assert [v.name for v in luciole.load("cut.tflite").graph.inputs] == ["pool"]
    words = ("resize", "net.tflite", "-o", "big.tflite", "--shape", "[2,8,8,3]")
    assert call(capsys, *words).out.endswith("gives logits: FLOAT32 [2,5]\n")


def test_tensors_have_the_short_names_of_tables(capsys: Capture, net: Path) -> None:
    model = residual()
    for op in model.graph.ops:
        op.output.name = f"net/{op.output.name}/BiasAdd;net/{op.output.name}/filter"
    whole = {op.output.name.split("/")[1]: op.output.name for op in model.graph.ops}
    luciole.save(model, "long.tflite")
    for words in (
        ("cut", "long.tflite", "-o", "cut.tflite", "--input", "pool", "--output", "sum"),
        ("extract", "long.tflite", "-o", "cut.tflite", "--from", "pool", "--to", "sum"),
    ):
        assert call(capsys, *words).code == 0
        assert [v.name for v in luciole.load("cut.tflite").graph.outputs] == [whole["sum"]]
    argv = ("split", "long.tflite", "-o", "long.conn.json", "--at", "sum")
    assert call(capsys, *argv).code == 0
    parts = json.loads(Path("long.conn.json").read_text())["parts"]
    assert parts[0]["outputs"] == [whole["sum"]]
    graph = model.graph
    graph.ops[0].output.name = "sum"
    luciole.save(model, "long.tflite")
    assert call(capsys, "cut", "long.tflite", "-o", "cut.tflite", "--output", "sum").code == 0
    assert [op.kind for op in luciole.load("cut.tflite").graph.ops] == ["CONV_2D"]
    ambiguous = ("cut", "long.tflite", "-o", "none.tflite", "--output", "BiasAdd")
    assert "no tensor is called 'BiasAdd'" in call(capsys, *ambiguous).error()


@pytest.mark.parametrize(
    ("argv", "code", "sentence"),
    [
        (["extract"], 2, "choose operators: --number, --name, --kind, --from or --to"),
        (["extract", "--number", "1-"], 2, "--number is '1-': it is written as 3-7,12"),
        (["extract", "--number", "7-2"], 2, "--number is '7-2': 7-2 ends before it begins"),
        (["extract", "--number", "9"], 1, "there is no operator 9"),
        (["extract", "--number", "0-99999999999"], 1, "there is no operator 6, they are numbered"),
        (["extract", "--to", "nothing"], 1, "no tensor is called 'nothing'"),
        (["cut"], 2, "say where to cut: --output TENSOR, --input TENSOR"),
        (["cut", "--output", "image"], 1, "'image' is no output"),
        (["resize", "--shape", "1,a"], 2, "a shape is written as 1,32,32,3"),
        (
            ["resize", "--shape", "0,64"],
            2,
            "--shape: '0,64': a shape is written as 1,32,32,3",
        ),
        (["resize", "--shape", "1,8,8,4"], 1, "Conv2D 'conv': filter has 3 input channels"),
        (["split", "--at", "sum"], 2, "out.circle: parts are described in a .json file"),
    ],
)
def test_surgery_refuses_in_one_line(
    capsys: Capture, net: Path, argv: list[str], code: int, sentence: str
) -> None:
    words = [argv[0], "net.tflite", "-o", "out.circle", *argv[1:]]
    assert sentence in call(capsys, *words).error(code)
    assert left_behind(net) == {"net.tflite"}


def test_surgery_refuses_to_write_over_the_model(capsys: Capture, net: Path) -> None:
    argv = ("cut", "net.tflite", "-o", "net.tflite", "--output", "sum")
    assert "named twice" in call(capsys, *argv).error(2)
