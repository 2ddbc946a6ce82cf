"""Names of tensors and files that no terminal can show, and extras that are not installed."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.tools.main import main
from tests.networks import network, value_named
from tests.tools.running import call, spawn

ARGUMENTS = {
    "input_model": "model.circle",
    "output_model": "answer.circle",
    "input_data": "train.npy",
    "encode_bits": "3",
}


def argv(**changes: str) -> list[str]:
    """Arguments of ``lquantizer`` with some of them changed or added."""
    return [word for name, value in (ARGUMENTS | changes).items() for word in (f"--{name}", value)]


SEVERAL = """
import json, sys
from luciole.tools.main import main
for words in json.loads(sys.argv[1]):
    assert main(words) == 0, words
"""
"""Runs programs one after the other in a process that has a standard output of its own."""


def test_names_that_are_not_printable_or_utf_8_break_nothing(folder: Path) -> None:
    """Those of tensors, and those of files."""
    model = network()
    value_named(model, "fc1").name = "fc\udcff \x1b[31m é"
    Path("odd.circle").write_bytes(to_bytes(model))
    odd = os.fsencode(folder) + b"/m\xff\xc3.circle"
    try:
        with open(odd, "wb") as file:
            file.write(Path("model.circle").read_bytes())
    except OSError:
        pytest.skip("needs a file system that takes any name")
    words = ["quantize", *argv()]
    words[words.index("answer.circle")] = name = os.fsdecode(odd)
    commands = (
        ["dump", "odd.circle"],
        ["dump", "odd.circle", "--json"],
        ["verify", "odd.circle"],
        ["quantize", *argv(input_model="odd.circle", report="report.json")],
        ["quantize", *argv(input_model="odd.circle"), "--json"],
        ["dump", name],
        ["verify", name],
        words,
    )
    outcome = spawn(json.dumps(commands), program=["-c", SEVERAL])
    assert outcome.code == 0, outcome
    assert "Traceback" not in outcome.err
    assert json.loads(Path("report.json").read_text())["layers"][0]["name"].startswith("fc")
    assert luciole.load("answer.circle").graph.ops[0].kind == "LQ_FULLY_CONNECTED"
    sentence = spawn("verify", odd + b"x").error(1)
    assert "No such file" in sentence
    assert "\\udcff" in sentence
    assert luciole.load(name).graph.ops[0].kind == "LQ_FULLY_CONNECTED"


INSTALL = 'pip install ".[tensorflow]" in the folder of luciole\'s sources'

WITHOUT = """
import sys
from importlib.abc import MetaPathFinder

class Blocker(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError("No module named " + repr(name), name=name)

sys.meta_path.insert(0, Blocker())
"""


def without(*blocked: str) -> str:
    """What begins a program that has none of some packages."""
    return WITHOUT.format(blocked=list(blocked))


REFUSING = SEVERAL.replace("== 0", "== 1")


def test_programs_refuse_keras_models_and_training_without_tensorflow(folder: Path) -> None:
    Path("m.keras").write_bytes(b"PK\x03\x04 and so on")
    Path("m.h5").write_bytes(b"\x89HDF\r\n\x1a\n and so on")
    Path("saved").mkdir()
    Path("saved/saved_model.pb").write_bytes(b"")
    np.savez("mnist.npz", x_train=np.zeros((4, 28, 28), np.uint8), y_train=np.zeros(4, np.uint8))
    named = ("m.keras", "m.h5", "saved")
    commands = [
        *(["import", name, "-o", "answer.circle"] for name in named),
        ["demo", "--mnist", "mnist.npz"],
    ]
    program = ["-c", without("tensorflow", "keras") + REFUSING]
    outcome = spawn(json.dumps(commands), program=program)
    assert (outcome.code, outcome.out) == (0, ""), outcome
    whose = (*named, "the MNIST demo")
    assert outcome.err.splitlines() == [
        f"luciole: error: {name}: this needs TensorFlow: {INSTALL}" for name in whose
    ]
    assert not Path("answer.circle").exists()


def test_everything_else_works_without_the_extras(folder: Path) -> None:
    commands = (
        ["quantize", *argv()],
        ["dump", "answer.circle"],
        ["import", "-o", "a.tflite", "model.circle"],
    )
    program = ["-c", without("tensorflow", "keras", "ai_edge_litert", "onert") + SEVERAL]
    assert spawn(json.dumps(commands), program=program).code == 0


def test_dumping_needs_no_compiler(folder: Path) -> None:
    commands = (["dump", "model.circle"], ["verify", "model.circle", "--json"])
    program = ["-c", without("numba", "llvmlite", "h5py", "rich") + SEVERAL]
    assert spawn(json.dumps(commands), program=program).code == 0


def test_programs_run_where_standard_output_is_closed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["verify", "model.circle"]) == 0
    assert sys.stdout.name == os.devnull
    sys.stdout.close()


def test_quantize_refuses_numbers_whose_squares_overflow(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = np.ones((60, 20), np.float32)
    data[3, 4] = -1e38
    np.save("huge.npy", data)
    for scheme in ("int8", "levels:w2a4"):
        argv = ["quantize", "model.circle", "-o", "q.circle", "--scheme", scheme]
        sentence = call(capsys, *argv, "--data", "huge.npy").error(1)
        assert sentence == "input 'x': element [4] of record 3 is -1e+38, more than 1e+18 can be"


def test_programs_refuse_a_full_disk_in_a_sentence(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    full = open("/dev/full", "w")  # noqa: SIM115  # closing it fails as well
    monkeypatch.setattr(sys, "stdout", full)
    assert main(["verify", "model.circle"]) == 1
    assert capsys.readouterr().err == "luciole: error: No space left on device\n"
    with pytest.raises(OSError, match="No space"):
        full.close()
