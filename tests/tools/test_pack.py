"""``luciole pack``: what an nnpackage holds."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from tests.tools.running import call, left_behind

Capture = pytest.CaptureFixture[str]
MANIFEST = {
    "major-version": "1",
    "minor-version": "2",
    "patch-version": "0",
    "configs": [],
    "models": ["model.circle"],
    "model-types": ["circle"],
}


def test_a_folder_as_one_pack_writes_it(capsys: Capture, folder: Path) -> None:
    outcome = call(capsys, "pack", "model.circle", "-o", "packages")
    assert outcome.out == "packages/model: metadata/MANIFEST, model.circle\n"
    package = folder / "packages" / "model"
    assert json.loads((package / "metadata" / "MANIFEST").read_text()) == MANIFEST
    assert (package / "model.circle").read_bytes() == Path("model.circle").read_bytes()


def test_an_archive_with_a_configuration(capsys: Capture, folder: Path) -> None:
    Path("run.cfg").write_text("BACKENDS=cpu\n")
    words = ("pack", "model.circle", "-o", "net.zip", "--config", "run.cfg", "--json")
    assert json.loads(call(capsys, *words).out)["package"] == "net.zip"
    first = Path("net.zip").read_bytes()
    with zipfile.ZipFile("net.zip") as archive:
        assert set(archive.namelist()) == {"metadata/MANIFEST", "model.circle", "metadata/run.cfg"}
        manifest = json.loads(archive.read("metadata/MANIFEST"))
    assert manifest == {**MANIFEST, "configs": ["run.cfg"]}
    call(capsys, *words)
    assert Path("net.zip").read_bytes() == first


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["test.npz", "-o", "p"], 2, "test.npz: an nnpackage holds a .circle or .tflite file"),
        (["none.circle", "-o", "p"], 1, "none.circle: No such file"),
        (["bad.circle", "-o", "p"], 1, "bad.circle: "),
        (["model.circle", "-o", "p", "--name", "a/b"], 2, "--name is 'a/b'"),
        (["model.circle", "-o", "p", "--name", ""], 2, "--name is ''"),
        (["model.circle", "-o", "config.json"], 1, "config.json"),
        (["model.circle", "-o", "p", "--config", "no.cfg"], 2, "--config no.cfg: No such file"),
    ],
)
def test_pack_refuses_in_a_sentence(
    capsys: Capture, folder: Path, words: list[str], code: int, sentence: str
) -> None:
    Path("bad.circle").write_bytes(b"nothing of the kind")
    before = left_behind(folder)
    assert sentence in call(capsys, "pack", *words).error(code)
    assert left_behind(folder) == before
