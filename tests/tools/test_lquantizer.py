"""``lquantizer``: files in, file and report out."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import luciole
from luciole.tools import lquantizer
from tests.networks import random
from tests.tools.running import Outcome, call, spawn, widths

Capture = pytest.CaptureFixture[str]
ISSUE = (
    "lquantizer --input_model model.circle --output_model answer.circle "
    "--input_data train.hdf5 --encode_bits 3"
)


def quantize(capsys: Capture, *more: str, output: str = "answer.circle") -> Outcome:
    argv = ["--input_model", "model.circle", "--output_model", output]
    if "--input_data" not in more:
        argv += ["--input_data", "train.npy"]
    return call(capsys, *argv, *more, main=lquantizer.main)


def test_the_command_of_the_manual_works_as_it_stands(capsys: Capture, folder: Path) -> None:
    outcome = call(capsys, *ISSUE.split()[1:], main=lquantizer.main)
    assert outcome.code == 0
    assert widths() == [("act1", 3, 3), ("fc2", 3, 3)]
    assert outcome.err.startswith("data: x: float32 [60,20], min ")
    title, head, *_ = outcome.out.splitlines()
    assert title == "signal/noise of each layer's output in dB"
    assert head.split() == ["layer", "format", "baseline", "offset", "fit", "bytes"]
    assert outcome.out.splitlines()[-1].startswith("answer.circle: 2.5 KB -> 2.0 KB in ")
    x = random(50, 60, 20)
    wanted, found = (
        luciole.Interpreter(f).run(x)["fc2"] for f in ("model.circle", "answer.circle")
    )
    assert np.mean((wanted - found) ** 2) < 0.1 * np.mean(wanted**2)


def test_the_installed_command_works_as_it_stands(folder: Path) -> None:
    program = shutil.which("lquantizer", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("needs an installed lquantizer beside Python")
    outcome = spawn(*ISSUE.split()[1:], program=[program])
    assert outcome.code == 0
    assert widths() == [("act1", 3, 3), ("fc2", 3, 3)]


def test_luciole_quantize_is_the_same_program(capsys: Capture, folder: Path) -> None:
    words = ISSUE.replace("train.hdf5", "train.npy").split()[1:]
    call(capsys, *words, main=lquantizer.main)
    first = Path("answer.circle").read_bytes()
    call(capsys, "quantize", *words)
    assert Path("answer.circle").read_bytes() == first


def test_the_bits_have_a_default(capsys: Capture, folder: Path) -> None:
    assert quantize(capsys, "--method", "fit").code == 0
    assert widths() == [("act1", 3, 3), ("fc2", 3, 3)]


def test_integers_with_weights_of_4_bits_are_the_default(capsys: Capture, folder: Path) -> None:
    assert quantize(capsys).code == 0
    assert widths() == []
    made = Path("answer.circle").read_bytes()
    assert quantize(capsys, "--scheme", "int:w4a8").code == 0
    assert Path("answer.circle").read_bytes() == made


def test_inputs_and_weights_may_differ(capsys: Capture, folder: Path) -> None:
    assert quantize(capsys, "--encode_bits", "2", "--input_bits", "4").code == 0
    assert widths() == [("act1", 4, 2), ("fc2", 4, 2)]
    assert quantize(capsys, "--weight_bits", "1").code == 0
    assert widths() == [("act1", 3, 1), ("fc2", 3, 1)]


def test_a_config_chooses_layer_by_layer(capsys: Capture, folder: Path) -> None:
    outcome = quantize(capsys, "--encode_bits", "2", "--config", "config.json")
    assert outcome.code == 0
    assert widths() == [("act1", 2, 2)]
    file = Path("answer.circle").stat().st_size
    line = (
        f"stays float: 272 B of the file's {file / 1000:.1f} KB ({27200 / file:.0f} %): fc2 272 B"
    )
    assert line in outcome.out.splitlines()
    assert "left alone, skipped by the config: fc2" in outcome.out


def test_json_says_what_was_done(capsys: Capture, folder: Path) -> None:
    outcome = quantize(capsys, "--json", "--report", "report.json", "--config", "config.json")
    report = json.loads(outcome.out)
    assert report == json.loads(Path("report.json").read_text())
    assert report.keys() >= {"layers", "bytes_before", "bytes_after", "seconds"}
    done, left = report["layers"]
    keys = {"name", "input_bits", "weight_bits", "mse", "snr_db", "skipped"}
    assert done.keys() == left.keys() >= keys | {"bytes_before", "bytes_after"}
    assert (done["name"], done["input_bits"], done["weight_bits"]) == ("fc1", 3, 3)
    assert done["skipped"] is None
    assert 0 < done["mse"] < 1
    assert done["snr_db"] > 10
    assert (left["name"], left["skipped"], left["mse"]) == ("fc2", "skipped by the config", None)
    assert report["bytes_before"] == Path("model.circle").stat().st_size
    assert report["bytes_after"] == Path("answer.circle").stat().st_size


def test_the_seed_and_the_fit_change_the_result(capsys: Capture, folder: Path) -> None:
    contents = []
    for more in (
        [],
        ["--method", "published"],
        ["--method", "published", "--seed", "1"],
        ["--method", "published", "--update", "least_squares"],
        ["--method", "published", "--initialisation", "greedy"],
    ):
        assert quantize(capsys, *more).code == 0
        contents.append(Path("answer.circle").read_bytes())
    assert len(set(contents)) == 5
    quantize(capsys, "--seed", "0")
    assert Path("answer.circle").read_bytes() == contents[0]


def test_the_first_records_and_preprocessing(capsys: Capture, folder: Path) -> None:
    outcome = quantize(capsys, "--calibration", "7", "--preprocess", "x * 0 + 5")
    assert "data: x: float32 [23,20], min 5, max 5, mean 5" in outcome.err
    assert "data: 7 records teach, 16 judge the file" in outcome.err


def test_one_bit_of_positive_data_is_warned_about(capsys: Capture, folder: Path) -> None:
    outcome = quantize(
        capsys, "--encode_bits", "1", "--preprocess", "x * x", "--method", "published"
    )
    assert outcome.code == 0
    warnings = [line for line in outcome.err.splitlines() if line.startswith("luciole: warning: ")]
    assert len(warnings) == 1
    assert "standardise the data" in warnings[0]


def test_other_data_gives_the_same_file(capsys: Capture, folder: Path) -> None:
    quantize(capsys)
    wanted = Path("answer.circle").read_bytes()
    Path("records").mkdir()
    for i, record in enumerate(random(50, 60, 20)):
        np.save(f"records/{i}.npy", record)
    for source in ("test.npz", "test.npz:x_test", "train.hdf5", "records"):
        assert quantize(capsys, "--input_data", source).code == 0
        assert Path("answer.circle").read_bytes() == wanted
