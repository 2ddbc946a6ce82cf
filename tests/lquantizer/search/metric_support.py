"""A metric in a file of its own, and what the files of a search lose by it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import luciole
from luciole.ir import Array, Model
from luciole.lquantizer.search.result import SearchResult

JUDGES = slice(4, None, 5)
METRIC = """
import numpy

def closeness(answers, labels):
    return 10 - float(numpy.abs(answers - labels).mean())
"""


def source(folder: Path) -> str:
    path = folder / "closeness.py"
    path.write_text(METRIC)
    return f"{path}:closeness"


def numbers(one: Model, x: Array) -> Array:
    """Compute the answers to the records that judge."""
    return next(iter(luciole.Interpreter(one).run({"x": x[JUDGES]}).values()))


def check_files(result: SearchResult, model: Model, x: Array, wanted: Array) -> None:
    """Compare what each file is said to lose with what it does."""
    before = np.abs(numbers(model, x) - wanted).mean()
    assert result.unit == "of closeness lost"
    assert result.front
    for file in result.front:
        lost = np.abs(numbers(luciole.load(file.path), x) - wanted).mean() - before
        assert file.found.drop == pytest.approx(lost, abs=1e-5)
        assert file.found.loss == pytest.approx(max(lost, 0) / (10 - before), abs=1e-5)
