"""Cases of files that once made a program end, or touch what was not theirs."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tests.fuzz import cases
from tests.fuzz.cases import Case
from tests.support import data_path

PER_MODEL = 1


@cache
def files() -> list[Path]:
    """All there are, by name."""
    return sorted(data_path("hostile").glob("*.circle"))


def make(seed: int, number: int) -> Case:
    """The file of that number."""
    path = files()[number]
    return Case(number, path.read_bytes(), path.name)


def run(case: Case, seed: int) -> str:
    """Read it and run it, as any file is."""
    return cases.run(case, seed)
