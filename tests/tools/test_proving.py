"""Programs that quantize judge the file that they write, and write no file that is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.exporters import files
from luciole.ir import Model, TensorType
from luciole.tools import lquantizer
from luciole.tools.main import main
from tests.networks import network, random

INT8 = "net.tflite -o q.tflite --scheme int8 --data data.npz:x_train"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    luciole.save(network(), tmp_path / "net.tflite")
    np.savez(tmp_path / "data.npz", x_train=random(3, 60, 20))
    return tmp_path


@pytest.fixture
def wrong_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a layer's weights change their signs on the way to the file: a fault of a writer."""
    sound = files.to_bytes

    def to_bytes(model: Model, format: str = "circle", **options: Any) -> bytes:
        work = model.clone()
        weights = next(v for v in work.graph.values if v.is_constant and v.dtype == TensorType.INT8)
        assert weights.data is not None
        weights.set_data(-weights.data)
        return sound(work, format, **options)

    monkeypatch.setattr("luciole.exporters.to_bytes", to_bytes)


def run(words: str) -> int:
    return main(["quantize", *words.split()])


def proof_of(folder: Path) -> dict[str, Any]:
    proof: dict[str, Any] = json.loads((folder / "r.json").read_text())["proof"]
    return proof


@pytest.mark.parametrize("output", ["q.tflite", "q.circle", "q.onnx"])
def test_the_file_is_judged_whatever_its_format(
    folder: Path, capsys: pytest.CaptureFixture[str], output: str
) -> None:
    words = f"net.tflite -o {output} --scheme int8 --data data.npz:x_train --report r.json"
    assert run(words) == 0
    told = capsys.readouterr().out
    assert "on 6 records held back" in told
    runtime = {"q.tflite": "LiteRT", "q.onnx": "ONNX Runtime"}.get(output)
    (entry,) = proof_of(folder)["outputs"]
    assert list(entry["runtimes"]) == ([] if runtime is None else [runtime])
    for fidelity in (entry["file"], entry["simulation"]):
        assert fidelity["snr_db"] > 30
    for fidelity in entry["runtimes"].values():  # ONNX Runtime's sums saturate on some processors
        assert fidelity["snr_db"] > 15


def test_records_behind_those_that_teach_judge(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(f"{INT8} --calibration 40 --report r.json") == 0
    assert "40 records teach, 16 judge the file" in capsys.readouterr().err
    proof = proof_of(folder)
    assert (proof["records"], proof["origin"]) == (16, "held back")


@pytest.mark.parametrize("scheme", ["dynamic", "minifloat --exponent 4 --mantissa 5"])
def test_schemes_that_learn_nothing_are_judged_by_data_all_the_same(
    folder: Path, capsys: pytest.CaptureFixture[str], scheme: str
) -> None:
    words = f"net.tflite -o q.circle --scheme {scheme}"
    assert run(words) == 0
    assert "on 16 records made up" in capsys.readouterr().out
    assert run(f"{words} --data data.npz:x_train") == 0
    assert "on 6 records held back" in capsys.readouterr().out


def test_nothing_is_judged_without_a_proof(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(f"{INT8} --no-proof --report r.json") == 0
    assert "proof" not in capsys.readouterr().out
    assert json.loads((folder / "r.json").read_text())["proof"] is None


def test_a_wrong_file_is_not_written(
    folder: Path, capsys: pytest.CaptureFixture[str], wrong_writer: None
) -> None:
    assert run(INT8) == 1
    told = capsys.readouterr()
    assert "luciole: error: q.tflite: the file is wrong" in told.err
    assert "where its simulation keeps" in told.err
    assert "->" not in told.out.splitlines()[-1]
    assert not list(folder.glob("q*"))


def test_a_wrong_file_is_kept_under_a_name_of_its_own(folder: Path, wrong_writer: None) -> None:
    (folder / "q.tflite").write_bytes(b"what was there")
    assert run(f"{INT8} --keep") == 1
    assert (folder / "q.tflite").read_bytes() == b"what was there"
    assert luciole.load(folder / "q.unproven.tflite").graph.ops


def test_learned_levels_are_judged_as_well(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "--input_model net.tflite --output_model q.circle --input_data data.npz:x_train"
    assert lquantizer.main([*words.split(), "--encode_bits", "3", "--report", "r.json"]) == 0
    assert "on 6 records held back" in capsys.readouterr().out
    (entry,) = proof_of(folder)["outputs"]
    assert entry["file"] == entry["simulation"]


def test_a_simulation_and_other_integers_are_judged(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(f"{INT8} --no-proof") == 0
    for words in ("--simulate", "--requantize uint8"):
        assert run(f"q.tflite -o other.tflite {words}") == 0
        assert "on 16 records made up" in capsys.readouterr().out


def test_an_optimized_file_computes_what_the_model_does(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["optimize", "net.tflite", "-o", "o.tflite"]) == 0
    assert "no error" in capsys.readouterr().out


def test_an_optimized_file_that_computes_otherwise_is_not_written(
    folder: Path, capsys: pytest.CaptureFixture[str], wrong_writer: None
) -> None:
    assert run(INT8 + " --no-proof") == 0
    assert main(["optimize", "q.tflite", "-o", "o.tflite"]) == 1
    assert "where nothing but rounding may differ" in capsys.readouterr().err
    assert not (folder / "o.tflite").exists()


def test_a_quantized_onnx_file_is_held_against_its_own_runtime(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(INT8.replace("q.tflite", "q.onnx")) == 0
    capsys.readouterr()
    assert main(["import", "q.onnx", "-o", "again.tflite"]) == 0
    assert "ONNX Runtime" in capsys.readouterr().out
