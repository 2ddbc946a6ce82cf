"""The program: what it writes, prints and refuses."""

from __future__ import annotations

import json
import re
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.drawing.palette import BITS, CATEGORIES
from luciole.tools.view import command
from tests.networks import network
from tests.tools.running import call, left_behind
from tests.tools.view.conftest import Digits, View
from tests.tools.view.graphs import nested

Capture = pytest.CaptureFixture[str]


def test_help_of_the_program_under_its_own_name(capsys: Capture) -> None:
    outcome = call(capsys, "--help", main=command.main)
    assert outcome.code == 0
    assert outcome.out.startswith("usage: circle-view ")


def test_a_page_and_a_picture_are_written(capsys: Capture, tmp_path: Path, digits: Digits) -> None:
    for name, start in (("a.html", "<!doctype html>"), ("b.svg", "<svg "), ("C.SVG", "<svg ")):
        outcome = call(capsys, "view", digits.quantized, "-o", tmp_path / name)
        assert (outcome.code, outcome.err) == (0, "")
        assert outcome.out.startswith(f"{tmp_path / name}: ")
        assert (tmp_path / name).read_text().startswith(start)
    assert left_behind(tmp_path) == {"a.html", "b.svg", "C.SVG"}


def test_colours_and_direction_are_chosen(capsys: Capture, tmp_path: Path, digits: Digits) -> None:
    argv = ["view", str(digits.quantized), "-o", str(tmp_path / "a.svg")]
    pictures = []
    for more in ([], ["--colour-by", "kind"], ["--horizontal"]):
        assert call(capsys, *argv, *more).code == 0
        pictures.append((tmp_path / "a.svg").read_text())
    assert [BITS[3] in p for p in pictures] == [True, False, True]
    assert [CATEGORIES["layer"] in p for p in pictures] == [False, True, False]
    sizes = [re.search(r'width="(\d+)" height="(\d+)"', p) for p in pictures]
    wide = [s is not None and int(s[1]) > int(s[2]) for s in sizes]
    assert wide == [False, False, True]


def test_json_prints_the_document(capsys: Capture, digits: Digits) -> None:
    outcome = call(
        capsys, "view", digits.float_model, digits.quantized, "--json", "--report", digits.report,
        "--data", digits.data, "--preprocess", digits.preprocess, "--limit", "20",
    )  # fmt: skip
    assert outcome.code == 0
    found = json.loads(outcome.out)
    hidden = found["models"][1]["graphs"][0]["nodes"][1]
    assert hidden["badge"] == "levels:w3a3"
    assert {"mse", "snr_db", "cosine", "bytes_before", "weights_snr_db"} <= hidden[
        "measures"
    ].keys()
    assert hidden["levels"]["weights"]["of"] == "original"
    assert sum(hidden["levels"]["input"]["histogram"]["level_counts"]) == 20 * 64


def errors_shown(capsys: Capture, *argv: str | Path) -> dict[str, dict[str, float]]:
    """Figures that --data measures, of every operator of the second model that has some."""
    outcome = call(capsys, "view", *argv, "--json")
    assert outcome.code == 0
    nodes = json.loads(outcome.out)["models"][1]["graphs"][0]["nodes"]
    kinds = ("mse", "snr_db", "cosine", "peak")
    own = {
        n["name"]: {k: n["measures"][k] for k in kinds if k in n.get("measures", {})} for n in nodes
    }
    return {name: figures for name, figures in own.items() if figures}


def test_data_given_now_measures_every_layer_and_the_report_keeps_the_rest(
    capsys: Capture, tmp_path: Path, digits: Digits
) -> None:
    models = [digits.float_model, digits.quantized]
    data = ["--data", digits.data, "--preprocess", digits.preprocess, "--limit", "20"]
    alone = errors_shown(capsys, *models, *data)
    assert errors_shown(capsys, *models, *data, "--report", digits.report) == alone
    told = errors_shown(capsys, *models, "--report", digits.report)
    assert told["digit"]["snr_db"] != alone["digit"]["snr_db"]
    compared = tmp_path / "diff.json"
    compared.write_text(json.dumps([{"name": "digit", "snr_db": 7.0}]))
    shown = errors_shown(capsys, *models, "--report", digits.report, "--errors", compared)
    assert [figures.get("snr_db") for figures in shown.values()] == [None, 7.0]


def test_files_for_other_viewers_are_written(
    capsys: Capture, tmp_path: Path, digits: Digits
) -> None:
    netron, explorer = tmp_path / "netron.json", tmp_path / "me.json"
    argv: list[str | Path] = [
        "--netron-attachment",
        netron,
        "--model-explorer",
        explorer,
        "--no-browser",
    ]
    outcome = call(capsys, "view", digits.quantized, "--report", digits.report, *argv)
    assert (outcome.code, outcome.out) == (0, "")
    assert json.loads(netron.read_text())["signature"] == "netron:attachment"
    assert set(json.loads(explorer.read_text())["results"]) == {"hidden/tanh", "digit"}


def test_a_model_that_verify_refuses_is_shown(capsys: Capture, tmp_path: Path) -> None:
    model = nested(20)
    model.graph.ops[3].output.dtype = luciole.ir.TensorType.INT8
    (tmp_path / "odd.circle").write_bytes(luciole.exporters.to_bytes(model, check=False))
    assert call(capsys, "verify", tmp_path / "odd.circle").code == 1
    sentence = (
        "error [DTYPE] subgraphs[0].operators[3]: FullyConnected 'net/stage0/block0/op3': "
        "result 'net/stage0/block0/op3' is INT8, FLOAT32 is computed"
    )
    for name in ("odd.html", "odd.svg"):
        outcome = call(capsys, "view", tmp_path / "odd.circle", "-o", tmp_path / name)
        assert outcome.code == 1
        assert outcome.err.startswith(f"luciole: error: odd.circle: {sentence} (and ")
        assert escape(sentence) in (tmp_path / name).read_text() or name == "odd.html"
    document = json.loads(call(capsys, "view", tmp_path / "odd.circle", "--json").out)
    (shown,) = document["models"]
    assert shown["wrong"].startswith(sentence)
    errors = [f for f in shown["findings"] if f["severity"] == "error"]
    assert (len(errors) > 1, errors[0]["code"]) == (True, "DTYPE")


def test_view_refuses_to_run_a_model_that_verify_refuses(capsys: Capture, tmp_path: Path) -> None:
    model = nested(20)
    model.graph.ops[3].output.dtype = luciole.ir.TensorType.INT8
    odd = tmp_path / "odd.circle"
    odd.write_bytes(luciole.exporters.to_bytes(model, check=False))
    text = call(capsys, "view", odd, "-o", tmp_path / "x.html", "--data", "none.npz").error(1)
    assert text.startswith("error [DTYPE] subgraphs[0].operators[3]")


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (
            ["m.circle", "-o", "x.pdf"],
            "--output is x.pdf: a name ending in .html or .svg is needed",
        ),
        (["m.circle", "n.circle", "-o", "x.svg"], "a picture shows one model, found two"),
        (["m.circle", "--preprocess", "x/255"], "--preprocess goes with --data"),
        (["m.circle", "--limit", "3"], "--limit goes with --data"),
        (["m.circle", "--data-limit", "3"], "--data-limit goes with --data"),
        (["m.circle", "-o", "x.html", "--port", "80"], "--port goes with a served page"),
        (["m.circle", "--port", "70000"], "--port is 70000, 0 to 65535 are possible"),
    ],
)
def test_view_refuses_what_does_not_go_together(
    capsys: Capture, argv: list[str], sentence: str
) -> None:
    assert call(capsys, "view", *argv).error(2).startswith(sentence)


def test_view_refuses_missing_and_foreign_files(
    capsys: Capture, tmp_path: Path, digits: Digits
) -> None:
    assert "No such file" in call(capsys, "view", tmp_path / "none.circle").error()
    text = tmp_path / "text.json"
    text.write_text("[]")
    for option in ("--report", "--latency", "--errors"):
        line = call(capsys, "view", digits.quantized, option, text).error()
        assert line.startswith(f"{text}: no")
    target = tmp_path / "nowhere" / "x.html"
    assert "cannot write" in call(capsys, "view", digits.quantized, "-o", target).error()


def test_view_refuses_arrays_as_a_model(capsys: Capture, tmp_path: Path) -> None:
    np.savez(tmp_path / "digits.npz", x=np.zeros(3))
    for program in ("view", "dump"):
        text = call(capsys, program, tmp_path / "digits.npz").error()
        assert text.startswith("digits.npz: NumPy arrays, not a model: a .circle, .tflite, ")


def test_a_report_of_another_model_is_told(capsys: Capture, tmp_path: Path, digits: Digits) -> None:
    path = tmp_path / "other.json"
    path.write_text(json.dumps({"layers": [{"name": "fc1", "mse": 1.0}, {"name": "fc2"}]}))
    argv: list[str | Path] = ["view", digits.quantized, "-o", tmp_path / "x.html", "--report"]
    outcome = call(capsys, *argv, path)
    warning = f"luciole: warning: {path}: none of its 2 layers is in the model\n"
    assert (outcome.code, outcome.err) == (0, warning)
    assert call(capsys, *argv, digits.report).err == ""


def specs(part: Any) -> dict[str, int]:
    """Number and bytes of every array that a document speaks of."""
    if isinstance(part, list):
        return {k: v for inner in part for k, v in specs(inner).items()}
    if not isinstance(part, dict):
        return {}
    return {str(part["blob"]): part["bytes"]} if "blob" in part else specs([*part.values()])


@pytest.mark.parametrize("limit", [None, 0, 5000, 1_200_000])
def test_larger_weights_are_embedded_on_request(
    view: View, tmp_path: Path, limit: int | None
) -> None:
    luciole.save(network((1000, 300, 4)), tmp_path / "large.circle")
    more = () if limit is None else ("--embed-limit", str(limit))
    text = view(tmp_path / "large.circle", *more).read_text()
    made, found = (
        json.loads(re.findall(rf'id="{part}">(.*?)</script>', text)[0])
        for part in ("document", "blobs")
    )
    sizes = specs(made)
    assert 1_200_000 in sizes.values()
    most = 500_000 if limit is None else limit
    assert found.keys() == {k for k, size in sizes.items() if size <= most}


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("-o", "x.svg", "--embed-limit", "5"), "--embed-limit goes with -o FILE.html"),
        (("--embed-limit", "5"), "--embed-limit goes with -o FILE.html"),
        (("-o", "x.html", "--embed-limit", "-5"), "--embed-limit is -5"),
        (("--netron-attachment", "x.txt"), "Netron takes names ending in .json"),
    ],
)
def test_the_program_refuses_options_that_mean_nothing(
    capsys: pytest.CaptureFixture[str], digits: Digits, more: tuple[str, ...], words: str
) -> None:
    assert command.main([str(digits.quantized), *more]) == 2
    assert words in capsys.readouterr().err
