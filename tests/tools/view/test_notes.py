"""Marks of findings and lines of proofs in the document of a page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import luciole
from luciole.drawing.blobs import Blobs
from luciole.drawing.document import Subject, document
from luciole.drawing.measures import report_figures
from luciole.drawing.notes import MOST_FINDINGS
from luciole.drawing.proofs import report_proof
from luciole.importers.files import read
from luciole.ir import LucioleError
from luciole.ir.findings import Finding, Severity
from luciole.lquantizer import Report
from luciole.lquantizer.proof import Fidelity, Measured, OutputProof, Proof
from luciole.tools.view import command
from tests.networks import network
from tests.tools.running import call


def marks(*findings: Finding) -> list[str | None]:
    (model,) = document([Subject(network(), "m", findings=findings)], Blobs())["models"]
    return [n.get("mark") for n in model["graphs"][0]["nodes"] if n["what"] == "op"]


def finding(severity: Severity, path: str) -> Finding:
    return Finding(severity, "CODE", path, "A sentence.")


def test_an_operator_has_the_mark_of_the_worst_that_is_said_of_it() -> None:
    first, last = (f"subgraphs[0].operators[{n}]" for n in (0, 2))
    assert marks(
        finding(Severity.WARNING, first),
        finding(Severity.ERROR, f"{first}.inputs[1]"),
        finding(Severity.WARNING, first),
        finding(Severity.WARNING, last),
        finding(Severity.ERROR, "subgraphs[0].tensors[1]"),
        finding(Severity.ERROR, "subgraphs[7].operators[1]"),
    ) == ["error", None, "warning"]


def test_operators_are_marked_beyond_the_findings_that_are_listed() -> None:
    others = [finding(Severity.WARNING, "model")] * MOST_FINDINGS
    assert marks(*others, finding(Severity.ERROR, "subgraphs[0].operators[1]"))[1] == "error"


def proven() -> Report:
    file, simulation = Fidelity(31.5, 0.98), Fidelity(32.0, None)
    outputs = [OutputProof("y", file, simulation, {"LiteRT": file})]
    metric = Measured("score", 0.9, 0.8, by_labels=True)
    proof = Proof(50, "held back", outputs, notes=["a note"], metric=metric)
    return Report(proof=proof)


def test_the_lines_of_a_proof_are_those_that_programs_print() -> None:
    report = proven()
    assert report.proof is not None
    content = json.loads(json.dumps(report.to_json()))
    assert report_proof(content, "r") == report.proof.lines()
    report.proof.faults.append("it has no outputs")
    assert report_proof(report.to_json(), "r")[0] == "the file is wrong: it has no outputs"
    assert report_proof({"layers": []}, "r") == []


@pytest.mark.parametrize("proof", [5, {}, {"metric": None, "outputs": [3]}, [1]])
def test_a_proof_that_luciole_did_not_write_is_refused(proof: Any) -> None:
    with pytest.raises(LucioleError, match=r"^r: its proof is not one of luciole's"):
        report_proof({"proof": proof}, "r")


def test_figures_of_stages_are_those_of_held_back_records() -> None:
    stages = {"baseline": 8.5, "output_aware": 12, "fine_tuned": None, "other": 3}
    figures = report_figures({"layers": [{"name": "fc1", "stages": stages}]}, "r")
    assert figures["fc1"] == {"stage_baseline": 8.5, "stage_output_aware": 12.0}


def test_python_shows_the_proof_of_a_result() -> None:
    (model,) = luciole.view(network(), report=proven()).document["models"]
    assert model["proof"][-1] == "proof: a note"


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--json",), "--json"),
        (("--report", "r.json"), "--report"),
        (("--model-explorer", "m.json"), "--model-explorer"),
        (("-o", "x.svg"), "--output FILE.svg"),
    ],
)
def test_an_empty_page_refuses_what_speaks_of_a_model(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], named: str
) -> None:
    outcome = call(capsys, *words, main=command.main)
    assert outcome.error(2).startswith(f"{named} goes with a MODEL")


def test_operators_of_a_keras_file_list_its_layers(tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    layers = keras.layers
    stack = [keras.Input((4,)), layers.Dense(3, name="hidden"), layers.ReLU(name="relu")]
    keras.Sequential([*stack, layers.Dense(2, name="head")]).save(tmp_path / "net.keras")
    imported = read(tmp_path / "net.keras")
    subject = Subject(imported.model, "net", nodes=imported.nodes)
    (model,) = document([subject], Blobs())["models"]
    assert model["source"] == [["Dense", "hidden"], ["ReLU", "relu"], ["Dense", "head"]]
    came = [n["origins"] for n in model["graphs"][0]["nodes"] if n["what"] == "op"]
    assert came == [[0, 1], [2]]
