"""People on a terminal see that kernels are compiled."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
from luciole.kernels.jit import kernel_cache, together, waiting, with_compiled
from tests.cache_support import adding
waiting.PATIENCE = float(sys.argv[1])
together.cores = lambda: int(sys.argv[2])
if sys.argv[3:]:
    waiting.always_show()
with_compiled(lambda: [k.address for k in [adding(n) for n in range(3)]])
print(kernel_cache().compiled)
"""


def said(folder: Path, *words: str, on_terminal: bool) -> str:
    """What a process writes on standard error that compiles three kernels."""
    ours, theirs = pty.openpty() if on_terminal else os.pipe()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        env={**os.environ, "LUCIOLE_CACHE": str(folder)},
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
        check=True,
    )
    assert done.stdout == "3\n"
    os.write(theirs, b".")
    os.close(theirs)
    text = os.read(ours, 1 << 16).decode()
    os.close(ours)
    return text.removesuffix(".")


LINES = [f"luciole: compiling kernels, {n} of 3" for n in (1, 2, 3)]


@pytest.mark.parametrize("cores", ["1", "2"])
def test_a_terminal_shows_a_line_that_goes(tmp_path: Path, cores: str) -> None:
    blank = " " * len(LINES[0])
    assert said(tmp_path, "0", cores, on_terminal=True) == "\r" + "\r".join([*LINES, blank, ""])


def test_a_short_time_shows_nothing(tmp_path: Path) -> None:
    assert said(tmp_path, "600", "1", on_terminal=True) == ""


def test_a_file_gets_a_line_only_where_it_is_asked_for(tmp_path: Path) -> None:
    assert said(tmp_path / "a", "0", "1", on_terminal=False) == ""
    assert (
        said(tmp_path / "b", "0", "1", "always", on_terminal=False)
        == "luciole: compiling 3 kernels\n"
    )
