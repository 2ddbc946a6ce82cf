"""``luciole quantize --scheme minifloat``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import luciole
from luciole.tools.main import main
from tests.networks import network, random


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    luciole.save(network((20, 48, 4)), tmp_path / "net.tflite")
    labels = np.arange(30) % 4
    np.savez(tmp_path / "data.npz", x_train=random(3, 30, 20), y_train=labels)
    return tmp_path


def run(words: str) -> int:
    return main(["quantize", *words.split(), "--scheme", "minifloat"])


def test_bits_that_are_asked_for(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("net.tflite -o q.circle --exponent 4 --mantissa 3 --report r.json") == 0
    told = capsys.readouterr().out
    assert "minifloat:4,3" in told
    report = json.loads((folder / "r.json").read_text())
    assert [layer["weight_bits"] for layer in report["layers"]] == [8, 8]
    assert report["bytes_after"] == (folder / "q.circle").stat().st_size


def test_bits_that_are_searched(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = "net.tflite -o q.circle --search --target-drop 4 --data data.npz:x_train"
    assert run(f"{words} --labels data.npz:y_train --scaled --per-layer") == 0
    told = capsys.readouterr().out
    assert "mantissa 7" in told
    assert "12 bits" in told
    assert "points of right answers lost" in told
    assert (folder / "q.circle").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "takes exponent and mantissa, or target_drop"),
        ("--exponent 5 --mantissa 5 --labels data.npz:y_train", "--labels goes with --search"),
        ("--exponent 5 --mantissa 5 --target-drop 1", "--target-drop goes with --search"),
        ("--search", "learns from data: give --data"),
    ],
)
def test_what_does_not_go_together_is_refused(
    folder: Path, words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(f"net.tflite -o q.circle {words}") != 0
    assert message in capsys.readouterr().err
    assert not (folder / "q.circle").exists()
