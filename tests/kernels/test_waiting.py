"""People on a terminal see that kernels are compiled."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import json, os, pty, sys
from luciole.kernels.jit import kernel_cache, together, waiting, with_compiled
from tests.cache_support import adding

def compile(folder, patience, cores, always):
    os.environ["LUCIOLE_CACHE"] = folder
    kernel_cache.cache_clear()
    waiting.PATIENCE = patience
    together.cores = lambda: cores
    if always:
        waiting.always_show()
    with_compiled(lambda: [k.address for k in [adding(n) for n in range(3)]])
    assert kernel_cache().compiled == 3

adding(3).compile()  # what the first one takes, once for all processes
for on_terminal, *words in json.loads(sys.argv[1]):
    ours, theirs = pty.openpty() if on_terminal else os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(theirs, 2)
        compile(*words)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    os.write(theirs, b".")
    os.close(theirs)
    print(json.dumps([status, os.read(ours, 1 << 16).decode().removesuffix(".")]), flush=True)
    os.close(ours)
"""

CASES = {
    "terminal, one core": (True, 0, 1, False),
    "terminal, two cores": (True, 0, 2, False),
    "short time": (True, 600, 1, False),
    "file": (False, 0, 1, False),
    "file that is to have it": (False, 0, 1, True),
}
"""Whether standard error is a terminal, seconds, cores, and whether a line is asked for."""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What processes write on standard error that compile three kernels each."""
    cases = [
        (on_terminal, str(tmp_path_factory.mktemp("cache")), *words)
        for on_terminal, *words in CASES.values()
    ]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(cases)],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    ran = [json.loads(line) for line in done.stdout.splitlines()]
    assert [status for status, _ in ran] == [0] * len(CASES), ran
    return {case: text for case, (_, text) in zip(CASES, ran, strict=True)}


LINES = [f"luciole: compiling kernels, {n} of 3" for n in (1, 2, 3)]


@pytest.mark.parametrize("case", ["terminal, one core", "terminal, two cores"])
def test_a_terminal_shows_a_line_that_goes(said: dict[str, str], case: str) -> None:
    blank = " " * len(LINES[0])
    assert said[case] == "\r" + "\r".join([*LINES, blank, ""])


def test_a_short_time_shows_nothing(said: dict[str, str]) -> None:
    assert said["short time"] == ""


def test_a_file_gets_a_line_only_where_it_is_asked_for(said: dict[str, str]) -> None:
    assert said["file"] == ""
    assert said["file that is to have it"] == "luciole: compiling 3 kernels\n"
