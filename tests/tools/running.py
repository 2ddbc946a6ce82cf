"""Run programs: in this process, or as users do, in one of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

import luciole
from luciole.ir.ops.lq_fully_connected import LQFullyConnected
from luciole.tools import main as umbrella

Main = Callable[[Sequence[str]], int]


@dataclass(frozen=True)
class Outcome:
    """How a program ended and what it printed."""

    code: int
    out: str
    err: str

    def error(self, code: int = 1) -> str:
        """The one line that says what was wrong; checks that nothing else but facts about the data
        was said, and the exit code."""
        lines = self.err.splitlines()
        assert lines, self
        assert lines[-1].startswith("luciole: error: "), self.err
        assert all(line.startswith("data: ") for line in lines[:-1]), self.err
        assert self.code == code, self
        assert self.out == "", self.out
        return lines[-1].removeprefix("luciole: error: ")


def call(
    capsys: pytest.CaptureFixture[str], *argv: str | Path, main: Main = umbrella.main
) -> Outcome:
    """Run a program's ``main`` here."""
    capsys.readouterr()
    try:
        code = main([str(word) for word in argv])
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    captured = capsys.readouterr()
    return Outcome(code, captured.out, captured.err)


def spawn(
    *argv: str | bytes | Path, program: Sequence[str] = ("-m", "luciole"), stdin: bytes = b""
) -> Outcome:
    """Run ``python -m luciole`` (or other arguments of Python) in a process of its own."""
    command = [sys.executable, *program, *argv]
    done = subprocess.run(command, input=stdin, capture_output=True, env=os.environ, check=False)
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())


def left_behind(folder: Path) -> set[str]:
    """The names of everything in a folder, hidden and temporary files included."""
    return {path.name for path in folder.iterdir()}


def widths(path: str = "answer.circle") -> list[tuple[str, int, int]]:
    """Name, input bits and weight bits of every quantized layer of a file."""
    ops = luciole.load(path).graph.ops
    return [
        (op.name, op.input_scales.dims[0], op.weights_scales.dims[1])
        for op in ops
        if isinstance(op, LQFullyConnected)
    ]
