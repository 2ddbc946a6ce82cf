"""``luciole diff``: two models on real data."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import luciole
from luciole.tools import diff_report
from luciole.tools.common import console
from tests.networks import network, random
from tests.tools.running import call, left_behind

Capture = pytest.CaptureFixture[str]
ARGV = ("diff", "model.circle", "small.circle", "--data", "train.npy")


@pytest.fixture
def models(folder: Path) -> Path:
    """The working folder, with the model and one with other weights."""
    other = network()
    for value in other.graph.values:
        if value.name == "fc1/weights":
            assert value.data is not None
            value.set_data(np.round(value.data * 8) / 8)
    luciole.save(other, "small.circle")
    return folder


def test_json_has_every_measure(capsys: Capture, models: Path) -> None:
    outcome = call(capsys, *ARGV, "--json", "--limit", "50")
    found = json.loads(outcome.out)
    assert outcome.code == 0
    assert (found["first"], found["second"]) == ("model.circle", "small.circle")
    assert found["records"] == 50
    assert [layer["name"] for layer in found["layers"]] == ["fc1", "act1", "fc2"]
    assert found["unmatched"] == {"first": [], "second": []}
    x = random(50, 60, 20)[:50]
    a, b = (
        luciole.Interpreter(p).run(x)["fc2"].astype(float) for p in ("model.circle", "small.circle")
    )
    (output,) = found["outputs"]
    assert output.keys() == {
        *("name", "kind", "second_kind", "relative", "snr_db", "cosine", "mpeir", "mse", "mae"),
        *("mape", "tae", "srmse", "largest", "top1_match"),
    }
    assert output["mse"] == pytest.approx(np.mean((a - b) ** 2), rel=1e-4)
    assert output["top1_match"] == pytest.approx(np.mean(a.argmax(1) == b.argmax(1)))
    assert output["srmse"] is None


def test_layers_are_ranked_with_a_bar_each(capsys: Capture, models: Path) -> None:
    outcome = call(capsys, *ARGV)
    found = json.loads(call(capsys, *ARGV, "--json").out)
    lines = outcome.out.splitlines()
    assert lines[0] == "3 layers over 60 records"
    ranked = sorted(found["layers"], key=lambda e: -e["relative"])
    assert [line.split()[0] for line in lines[2:5]] == [e["name"] for e in ranked]
    bars = [line.count("█") for line in lines[2:5]]
    assert bars[0] == 20
    assert bars == sorted(bars, reverse=True)
    assert f"{100 * ranked[0]['relative']:.2f} %" in lines[2]
    assert lines[5].startswith("the relative error grows most in fc1: from 0.00 % in what it reads")
    assert lines[7].split() == ["output", "top-1", "MAE", "MAPE", "MPEIR", "MSE", "SNR"]
    assert outcome.err.startswith("data: x: float32 [60,20]")


def test_layers_in_order_by_another_measure_and_the_worst(capsys: Capture, models: Path) -> None:
    lines = call(capsys, *ARGV, "--in-order", "--by", "mse").out.splitlines()
    assert [line.split()[0] for line in lines[2:5]] == ["fc1", "act1", "fc2"]
    assert lines[1].split()[2] == "mse"
    lines = call(capsys, *ARGV, "--top", "1").out.splitlines()
    assert lines[0] == "3 layers over 60 records, the 1 worst"
    assert lines[4] == ""
    assert "--top is 0, at least 1 is needed" in call(capsys, *ARGV, "--top", "0").error(2)


def test_the_layer_that_is_broken_is_named_before_those_that_it_spoils(
    capsys: Capture, folder: Path
) -> None:
    model = network((20, 24, 24, 8))
    values = {value.name: value for value in model.graph.values}
    bias, last = (values[name].data for name in ("fc2/bias", "fc3/weights"))
    assert bias is not None
    assert last is not None
    values["fc2/bias"].set_data(bias + 1)
    values["fc3/weights"].set_data(last - last.mean(1, keepdims=True))  # takes the bias off again
    luciole.save(model, "model.circle")
    weights = values["fc2/weights"].data
    assert weights is not None
    values["fc2/weights"].set_data(weights + 0.05 * random(7, 24, 24))
    luciole.save(model, "small.circle")
    found = json.loads(call(capsys, *ARGV, "--json").out)
    errors = {layer["name"]: layer["relative"] for layer in found["layers"]}
    assert max(errors, key=errors.__getitem__) != "fc2"
    growth = {"name": "fc2", "read": 0.0, "error": errors["act2"], "behind": "act2"}
    assert found["growth"] == growth
    line = "the relative error grows most in fc2: from 0.00 % in what it reads to "
    lines = call(capsys, *ARGV).out.splitlines()
    (told,) = [one for one in lines if one.startswith(line)]
    sentence = f"{line}{100 * errors['act2']:.2f} % in act2 behind it"
    assert told == f"{sentence}; --in-order lists layers as they run"
    assert sentence in str(luciole.diff("model.circle", "small.circle", np.load("train.npy")))
    assert sentence in call(capsys, *ARGV, "--in-order").out.splitlines()
    assert "top-5: the share of the first 5 classes in common" in lines[-1]


def test_equal_models(capsys: Capture, models: Path) -> None:
    argv = [*ARGV[:2], "model.circle", *ARGV[3:]]
    text = call(capsys, *argv).out
    assert text.count("exact") == 4
    assert "100.00 %" in text


def test_what_visq_writes(capsys: Capture, models: Path) -> None:
    files = {"mpeir": "a.json", "mse": "b.json", "tae": "c.json"}
    argv = [*ARGV, "--visq", "a.json", "--mse_output", "b.json", "--tae-output", "c.json", "--json"]
    found = json.loads(call(capsys, *argv).out)
    for metric, path in files.items():
        content = json.loads(Path(path).read_text())
        assert content["meta"].keys() == {"model", "metric", "colorscheme"}
        assert content["meta"]["model"] == "model.circle"
        assert content["meta"]["metric"] == metric.upper()
        colours = content["meta"]["colorscheme"]
        assert len(colours) == 9
        assert all(c.keys() == {"b", "e", "c"} for c in colours)
        assert (colours[0]["c"], colours[8]["c"]) == ("#ffffcc", "#800026")
        (errors,) = content["error"]
        assert errors == {e["name"]: round(e[metric], 4) for e in found["layers"]}
    first = json.loads(Path("a.json").read_text())["meta"]["colorscheme"]
    assert (first[0]["b"], first[8]["e"]) == (0.0, 1.0)


def test_measures_in_ones_lines(capsys: Capture, models: Path) -> None:
    found = json.loads(call(capsys, *ARGV, "--json").out)["outputs"][0]
    lines = call(capsys, *ARGV, "--print", "mae,MAPE,top1,top5").out.splitlines()
    assert lines[:2] == ["Mean Absolute Error (MAE)", f"MAE for fc2 is {found['mae']:.6g}"]
    assert lines[3] == f"MAPE for fc2 is {found['mape']:.6g}%"
    assert lines[5] == f"Mean Top-1 match ratio for fc2 is {found['top1_match']:.6g}"
    assert lines[7] == "Top-5 metric for fc2 is ignored: it scores no such classes"
    assert len(lines) == 8


def test_diff_refuses_measures_that_it_does_not_print(capsys: Capture, models: Path) -> None:
    text = call(capsys, *ARGV, "--print", "mae,srmse").error(2)
    assert text == "--print has no 'srmse': there are mae, mape, mpeir, top1, top5, mse"


def test_models_whose_tensors_are_called_otherwise(capsys: Capture, models: Path) -> None:
    other = luciole.load("small.circle")
    for value in other.graph.values:
        value.name = f"other/{value.name}"
    luciole.save(other, "small.circle")
    text = call(capsys, *ARGV).out
    assert text.startswith("0 layers over 60 records\n\noutput")
    assert "only in the first model: fc1, act1\n" in text
    assert "only in the second model: other/fc1, other/act1\n" in text


@pytest.mark.parametrize("width", [60, 80, 120])
def test_tables_fit_the_terminal(
    capsys: Capture, models: Path, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setattr(console, "columns", lambda: width)
    rows = console.fitted([("layer", "x"), ("n" * 200, "y" * 9)])
    assert len(rows[1][0]) == min(60, width - 7 - 9)
    text = call(capsys, *ARGV).out
    assert ("MPEIR" in text.splitlines()[1]) == (width >= 100)


def test_bars_are_drawn_in_eighths() -> None:
    assert [diff_report.bar(share, 2) for share in (0, 0.01, 0.5, 0.95, 1)] == [
        *("", "▏", "█", "██", "██")
    ]


def test_diff_refuses_models_of_another_form(capsys: Capture, models: Path) -> None:
    luciole.save(network((20, 16, 5)), "small.circle")
    before = left_behind(models)
    text = call(capsys, *ARGV, "--visq", "v.json").error(1)
    assert "output 'fc2' is [60,4] in the first model and [60,5] in the second" in text
    assert left_behind(models) == before


def test_diff_refuses_operators_without_kernel(
    capsys: Capture, models: Path, unsupported: Path
) -> None:
    argv = [*ARGV[:2], str(unsupported), *ARGV[3:]]
    assert "CUSTOM(Mystery) (2x)" in call(capsys, *argv).error(3)
