"""``luciole search --preset seed`` by labels, with a shared choice and one that is made."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import luciole
from luciole.lquantizer.search.published import search
from luciole.tools.search.command import main
from tests.norm_support import images, unfolded

COUNT, JUDGED = 60, 20


def test_it_searches_by_labels(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It begins with few widths here: TensorFlow takes more than a second for each network."""
    monkeypatch.setattr(search, "WIDTHS", (2, 5))
    x = images(1, COUNT)
    y = luciole.Interpreter(unfolded()).run({"x": x})["softmax"].argmax(1)
    luciole.save(unfolded(), tmp_path / "model.circle")
    np.savez(tmp_path / "data.npz", x=x, y=y.astype(np.int64))
    words = [str(tmp_path / "model.circle"), "--data", f"{tmp_path}/data.npz:x", "--labels", "y"]
    words += ["--preset", "seed", "--generations", "0", "--partial", "1", "--final", "1"]
    words += ["--judges", str(JUDGED), "--files", "2", "--granularity", "tensor", "--json"]
    words += ["--tie", "*[vp]*", "--fixed", "dense=w8", "-o", f"{tmp_path}/front"]
    assert main(words) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["layers"] == ["conv", "dense"]
    assert {one["candidate"][0] for one in report["evaluated"]} == {"w2", "w5"}
    held_back = (COUNT - JUDGED) // 5
    for one in report["evaluated"]:
        assert one["candidate"][1] == "w8"
        assert (one["loss"] * held_back) % 1 == pytest.approx(0, abs=1e-4)
    for one in report["front"]:
        assert (one["loss"] * JUDGED) % 1 == pytest.approx(0, abs=1e-6)
    first = tmp_path / "front" / report["front"][0]["file"]
    widths = json.loads(first.with_suffix(".json").read_text())
    names = list(widths["layers"])
    assert widths["layers"][names[0]] == widths["layers"][names[1]]
    assert widths["preset"] == "seed"
    assert set(widths["layers"].values()) <= {f"int:w{bits}a8" for bits in (2, 5, 8)}
    assert first.with_suffix(".html").exists()
