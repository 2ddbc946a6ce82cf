"""``luciole quantize``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import luciole
from luciole.ir import TensorType
from luciole.tools.main import main
from tests.networks import network, random


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    luciole.save(network(), tmp_path / "net.tflite")
    np.savez(tmp_path / "data.npz", x_train=random(3, 30, 20))
    return tmp_path


def run(words: str) -> int:
    return main(["quantize", *words.split()])


def test_integers_by_one_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("net.tflite -o q.tflite --scheme int8 --data data.npz:x_train --report r.json") == 0
    told = capsys.readouterr().out
    assert "w8a8" in told
    model = luciole.load(folder / "q.tflite")
    assert {op.kind for op in model.graph.ops} == {
        "QUANTIZE",
        "FULLY_CONNECTED",
        "TANH",
        "DEQUANTIZE",
    }
    report = json.loads((folder / "r.json").read_text())
    assert [layer["weight_bits"] for layer in report["layers"]] == [8, 8]
    assert all(layer["bytes_after"] < layer["bytes_before"] for layer in report["layers"])
    assert report["floats"] == []


@pytest.mark.parametrize("scheme", ["dynamic", "weights", "float16"])
def test_no_data_is_needed_for_weights_alone(folder: Path, scheme: str) -> None:
    assert run(f"net.tflite -o q.tflite --scheme {scheme}") == 0
    stored = {v.dtype for v in luciole.load(folder / "q.tflite").graph.values}
    assert (TensorType.FLOAT16 if scheme == "float16" else TensorType.INT8) in stored


def test_levels_are_learned_unless_a_scheme_says_otherwise(folder: Path) -> None:
    for words in ("--encode_bits 2", "--scheme learned --encode_bits 2", "--scheme=learned"):
        assert run(f"net.tflite -o q.circle --data data.npz:x_train {words}") == 0
        kinds = [op.kind for op in luciole.load(folder / "q.circle").graph.ops]
        assert "LQ_FULLY_CONNECTED" in kinds
        (folder / "q.circle").unlink()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("net.tflite -o q.tflite --scheme int9", "scheme is 'int9'"),
        ("net.tflite -o q.tflite --scheme int8", "learns from data: give --data"),
        ("net.tflite -o q.tflite --scheme dynamic --data data.npz:x_train", "needs no data"),
        (
            "net.tflite -o q.tflite --scheme int8 --ranges odd --data data.npz:x_train",
            "ranges is 'odd'",
        ),
        ("net.tflite -o q.txt --scheme dynamic", "q.txt"),
        ("nothing.tflite -o q.tflite --scheme dynamic", "nothing.tflite"),
    ],
)
def test_refusals_are_a_sentence(
    folder: Path, words: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) in (1, 2)
    told = capsys.readouterr().err
    assert sentence in told
    assert "Traceback" not in told
    assert not list(folder.glob("q.*"))
