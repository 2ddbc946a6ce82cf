"""Read models for programs that look at them: also what ``verify`` refuses, also from stdin."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from luciole.importers import files
from luciole.importers.imported import Imported
from luciole.importers.reader import STANDARD_INPUT, named, reader_of_bytes
from luciole.ir.findings import Finding, refusal
from luciole.tools.common import console
from luciole.tools.common.command import FAILED, FINE


def read_model(path: str) -> Imported:
    """Read the model behind a path (``-``: standard input), also one that ``verify`` refuses:
    looking is how people find out why.
    """
    if path != "-":
        return files.read(path)
    data = sys.stdin.buffer.read()
    reader = reader_of_bytes(data)
    with named(Path(STANDARD_INPUT)):
        return reader.read_bytes(data)


def judged(path: str, findings: Sequence[Finding]) -> int:
    """Print the first error of a file that was shown all the same; return the exit code that it
    makes.
    """
    reason = refusal(findings)
    if reason is None:
        return FINE
    console.say(f"luciole: error: {Path(path).name}: {reason}")
    return FAILED
