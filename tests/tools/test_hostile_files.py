"""Files that once made a program crash, hang or print a traceback, given to all that look at files
or run them: a sentence and the exit code of a refusal, and what can be shown is shown.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import data_path
from tests.tools.running import call

Capture = pytest.CaptureFixture[str]

DAMAGED = {
    "oob_read": (
        "[SHAPE] subgraphs[0].operators[0]: Add 'y': shapes [4096] and [4] do not broadcast"
    ),
    "oob_read_variable": (
        "[SHAPE] subgraphs[0].operators[0]: Add 'y': shapes [4096] and [4] do not broadcast"
    ),
    "oob_write": (
        "[SHAPE] subgraphs[0].operators[0]: TransposeConv 'y': "
        "output channels: input_sizes has 1, filter has 64"
    ),
    "sparse_valueerror": (
        "[SPARSITY] subgraphs[0].tensors[1] 'ifm2': a tensor without axes has no zeros to leave out"
    ),
    "strided_indexerror": (
        "[SHAPE] subgraphs[0].operators[0]: StridedSlice 'y0': entries: begin has 3, end has 4"
    ),
    "view_64GiB": (
        "[SHAPE] subgraphs[0].operators[0]: "
        "LQConv2D 'lq_conv_2d_0': 33 weight bits, 1 to 4 are possible"
    ),
    "view_indexerror": (
        "[SHAPE] subgraphs[0].operators[0]: "
        "LQFullyConnected 'lq_fully_connected_0': input_scales has shape [], rank 1 is needed"
    ),
}
"""The error of each file that no program may run."""

SOUND = ("case_11_2216", "case_11_60086", "case_11_9067")
"""Files that only ask for much memory: nothing is wrong with them before they run."""

damaged = pytest.mark.parametrize("name", DAMAGED)


def test_all_files_are_tested() -> None:
    folder = data_path("hostile/README.md").parent
    assert {path.stem for path in folder.glob("*.circle")} == {*DAMAGED, *SOUND}


def sentence(name: str) -> str:
    return f"luciole: error: {name}.circle: error {DAMAGED[name]}\n"


@damaged
def test_verify_lists_the_error(capsys: Capture, name: str) -> None:
    outcome = call(capsys, "verify", data_path(f"hostile/{name}.circle"))
    assert (outcome.code, outcome.err) == (1, "")
    assert f"error {DAMAGED[name]}" in outcome.out.splitlines()


@damaged
@pytest.mark.parametrize("words", [[], ["--json"], ["--summary"], ["--tensors"]], ids=str)
def test_dump_shows_the_file_and_says_the_error(
    capsys: Capture, name: str, words: list[str]
) -> None:
    outcome = call(capsys, "dump", data_path(f"hostile/{name}.circle"), *words)
    assert (outcome.code, outcome.err) == (1, sentence(name))
    assert len(outcome.out.splitlines()) > 2
    assert (DAMAGED[name] in outcome.out) == (not words)


@damaged
def test_bench_refuses_the_file(capsys: Capture, name: str) -> None:
    outcome = call(capsys, "bench", data_path(f"hostile/{name}.circle"))
    assert (outcome.code, outcome.err, outcome.out) == (1, sentence(name), "")


@damaged
@pytest.mark.parametrize("target", ["shown.html", "shown.svg"])
def test_view_writes_the_file_and_says_the_error(
    capsys: Capture, tmp_path: Path, name: str, target: str
) -> None:
    source = data_path(f"hostile/{name}.circle")
    outcome = call(capsys, "view", source, "-o", tmp_path / target)
    assert (outcome.code, outcome.err) == (1, sentence(name))
    text = (tmp_path / target).read_text()
    assert text.count(DAMAGED[name].partition(" ")[0]) > 0


@pytest.mark.parametrize("name", SOUND)
@pytest.mark.parametrize("program", ["verify", "dump", "view"])
def test_files_that_ask_for_much_are_shown(
    capsys: Capture, tmp_path: Path, program: str, name: str
) -> None:
    words: list[str | Path] = ["-o", tmp_path / "shown.html"] if program == "view" else []
    outcome = call(capsys, program, data_path(f"hostile/{name}.circle"), *words)
    assert (outcome.code, outcome.err) == (0, "")
