"""``luciole demo``: the first thing a newcomer runs."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

import luciole
from luciole.ir.ops.lq_fully_connected import LQFullyConnected
from luciole.tools import demo
from luciole.tools.data import load_data
from tests.tools.running import call, left_behind

Capture = pytest.CaptureFixture[str]
NAMES = ["fp32", "int3", "int2", "int1"]


def test_json_has_a_row_for_each_file(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = call(capsys, "demo", "--calibration", "100", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    result = json.loads(outcome.out)
    assert result.keys() >= {"rows", "files"}
    assert [row["name"] for row in result["rows"]] == NAMES
    assert result["files"] == [f"luciole-demo/digits-{name}.circle" for name in NAMES]
    for row, file in zip(result["rows"], result["files"], strict=True):
        assert row.keys() >= {"name", "bytes", "top1", "median_us"}
        assert row["bytes"] == Path(file).stat().st_size
        assert row["median_us"] > 0
        assert row["top1"] > 0.7
    assert [row["bytes"] for row in result["rows"]] == sorted(
        (row["bytes"] for row in result["rows"]), reverse=True
    )
    for file, bits in zip(result["files"][1:], (3, 2, 1), strict=True):
        ops = [op for op in luciole.load(file).graph.ops if isinstance(op, LQFullyConnected)]
        assert ops
        assert {op.input_scales.dims for op in ops} == {(bits,)}
    assert left_behind(tmp_path / "luciole-demo") == {f"digits-{name}.circle" for name in NAMES}


def test_text_is_a_table_and_says_what_to_do_next(capsys: Capture, tmp_path: Path) -> None:
    argv = ["demo", "--calibration", "60", "--method", "published"]
    outcome = call(capsys, *argv, "--output", tmp_path / "deep/folder")
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert lines[0] == "digits: 597 test records, levels learned from 60 unlabelled records"
    assert " ".join(lines[1].split()) == "model file size smaller top-1 time per inference"
    assert [line.split()[0] for line in lines[2:6]] == NAMES
    first, last = (tmp_path / "deep/folder" / f"digits-{name}.circle" for name in ("fp32", "int1"))
    assert lines[-1] == f"look inside:  circle-view {first} {last}"
    assert last.exists()


def test_demo_refuses_a_folder_that_is_a_file(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    text = call(capsys, "demo", "--output", tmp_path / "taken").error(1)
    assert text.startswith(f"cannot write into {tmp_path / 'taken'}: ")


@pytest.mark.parametrize("count", ["0", "-5"])
def test_demo_refuses_to_learn_from_nothing(capsys: Capture, tmp_path: Path, count: str) -> None:
    text = call(capsys, "demo", "--output", tmp_path, "--calibration", count).error(2)
    assert text == f"limit is {count}, at least 1 record is needed"


@pytest.mark.parametrize("name", ["missing.npz", "text.npz", "other.npz"])
def test_demo_refuses_data_that_is_not_mnist(capsys: Capture, tmp_path: Path, name: str) -> None:
    (tmp_path / "text.npz").write_text("no archive")
    np.savez(tmp_path / "other.npz", x_train=np.zeros((3, 5, 5)), y_train=np.zeros(3))
    path = tmp_path / name
    text = call(capsys, "demo", "--mnist", path, "--output", tmp_path / "out").error(1)
    assert text.startswith(f"{path}: ")


def test_the_bundled_preprocessing_is_that_of_the_bundled_pixels() -> None:
    with resources.as_file(resources.files("luciole") / "demo_data") as folder:
        graph = luciole.load(folder / "digits.circle").graph
        data = load_data(f"{folder}/digits.npz:x_train", graph, preprocess=demo.DIGITS_PREPROCESS)
    pixels = np.concatenate([array.ravel() for array in data.records.values()])
    assert abs(pixels.mean()) < 0.01
    assert abs(pixels.std() - 1) < 0.01
