"""Every program's output: links are followed, and what is no file is written to."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.tools.common.apart import Output
from luciole.tools.main import PROGRAMS, parser_of
from tests.tools.running import call, left_behind

Capture = pytest.CaptureFixture[str]

DIFF = ("diff", "model.circle", "model.circle", "--data", "train.npy", "--limit", "2")
BENCH = ("bench", "model.circle", "--num-runs", "1", "--min-secs", "0", "--warmup-min-secs", "0")
QUANTIZE = ("quantize", "--input_model", "model.circle", "--input_data", "train.npy")
VIEW = ("view", "model.circle")
OUTPUTS = {
    "net.circle": ("import", "model.circle", "-o"),
    "net.tflite": ("import", "model.circle", "-o"),
    "net.recipe": ("chef", "--reverse", "model.circle", "-o"),
    "net.html": (*VIEW, "-o"),
    "net.svg": (*VIEW, "-o"),
    "netron.json": (*VIEW, "--no-browser", "--netron-attachment"),
    "explorer.json": (*VIEW, "--no-browser", "--model-explorer"),
    "tensor.npy": ("dump", "model.circle", "--tensor", "fc1/weights", "-o"),
    "tensor.h5": ("dump", "model.circle", "--tensor", "fc1/weights", "-o"),
    "tensors.h5": ("dump", "model.circle", "--tensors-to-hdf5"),
    "visq.json": (*DIFF, "--visq"),
    "times.csv": (*BENCH, "--csv"),
    "trace.json": (*BENCH, "--trace"),
    "small.circle": (*QUANTIZE, "--output_model"),
    "report.json": (*QUANTIZE, "--output_model", "small.circle", "--report"),
}
"""By the name of what is written, the arguments before it."""


@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs_follow_links(capsys: Capture, folder: Path, name: str) -> None:
    Path("elsewhere").mkdir()
    Path("elsewhere", name).write_text("old")
    Path("elsewhere", name).chmod(0o640)
    Path(name).symlink_to(Path("elsewhere", name))
    outcome = call(capsys, *OUTPUTS[name], name)
    assert outcome.code == 0, outcome
    assert Path(name).is_symlink()
    written = Path("elsewhere", name)
    assert written.read_bytes() != b"old"
    assert written.stat().st_mode & 0o777 == 0o640
    assert left_behind(Path("elsewhere")) == {name}


@pytest.mark.parametrize("name", OUTPUTS)
def test_programs_refuse_outputs_that_cannot_be_written(
    capsys: Capture, folder: Path, name: str
) -> None:
    before = left_behind(folder)
    line = call(capsys, *OUTPUTS[name], f"none/{name}").error(1)
    assert line == f"cannot write none/{name}: there is no folder none"
    assert left_behind(folder) == before


OVER = {
    "-o": ("import", "model.circle", "-o", "./model.circle"),
    "model": ("quantize", "model.circle", "-o", "model.circle", "--scheme", "dynamic"),
    "array": (*QUANTIZE[:3], "--data", "d.npz:x", "-o", "q.circle", "--report", "d.npz"),
    "link": ("optimize", "model.circle", "-o", "link.circle"),
    "list": ("view", "model.circle", "other.circle", "-o", "other.circle"),
    "runtime": (*BENCH, "--against", "litert:other.circle", "--csv", "other.circle"),
    "each": ("run", "model.circle", "--data", "each:in", "-o", "each:in"),
    "archive": ("cache", "export", "other.circle", "--models", "model.circle", "other.circle"),
    "recipe": ("chef", "--reverse", "model.circle", "-o", "model.circle"),
    "two": (*DIFF, "--visq", "two.json", "--mse-output", "two.json"),
}
"""Commands that would write over what they read, or twice to one file."""


@pytest.mark.parametrize("case", OVER)
def test_programs_refuse_to_write_over_what_they_read(
    capsys: Capture, folder: Path, case: str
) -> None:
    Path("link.circle").symlink_to("model.circle")
    Path("loop.circle").symlink_to("loop.circle")
    shutil.copy("model.circle", "other.circle")
    np.savez("d.npz", x=np.ones((3, 20), np.float32))
    Path("in0").write_bytes(np.ones(20, np.float32).tobytes())
    before = {path.name: path.read_bytes() for path in folder.glob("[!l]*")}
    assert "is named twice: give each file that is written a place" in call(
        capsys, *OVER[case]
    ).error(2)
    assert {path.name: path.read_bytes() for path in folder.glob("[!l]*")} == before
    assert "Too many levels" in call(capsys, "verify", "loop.circle").error(1)


def test_every_option_that_names_a_file_to_write_says_so() -> None:
    written = re.compile(r"\bwrite (?!what)|to write|is written")
    unmarked = [
        f"{name} {action.option_strings}"
        for name in PROGRAMS
        for action in parser_of(name)._actions
        if action.metavar == "FILE" and written.search(action.help or "")
        if action.type is not Output
    ]
    assert not unmarked


def test_a_loaded_model_may_be_written_over_its_file(folder: Path) -> None:
    x = np.ones((1, 20), np.float32)
    wanted = luciole.Interpreter("model.circle").run(x)["fc2"]
    model = luciole.load("model.circle")
    luciole.save(model, "model.circle")
    np.testing.assert_array_equal(luciole.Interpreter(model).run(x)["fc2"], wanted)
    np.testing.assert_array_equal(luciole.Interpreter("model.circle").run(x)["fc2"], wanted)


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="needs Linux's /proc")
@pytest.mark.parametrize("to_file", [False, True])
def test_standard_output_gets_the_model_and_nothing_else(folder: Path, to_file: bool) -> None:
    command = [sys.executable, "-m", "luciole", "import", "model.circle", "-o", "/dev/stdout"]
    with Path("out.circle").open("wb") as out:
        stdout = out if to_file else subprocess.PIPE
        done = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, check=True)
    content = Path("out.circle").read_bytes() if to_file else done.stdout
    assert content == to_bytes(from_bytes(content))
    assert content == to_bytes(luciole.load("model.circle"))
    assert done.stderr.startswith(b"/dev/stdout: ")


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="needs Linux's /proc")
def test_programs_refuse_a_pipe_that_nobody_reads(folder: Path) -> None:
    command = [sys.executable, "-m", "luciole", "import", "model.circle", "-o", "/dev/stdout"]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert done.returncode == 1
    assert done.stderr == b"luciole: error: cannot write /dev/stdout: Broken pipe\n"
