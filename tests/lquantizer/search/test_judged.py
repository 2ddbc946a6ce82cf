"""Searches that labels or a metric of the user's own judge, and a bound on what files may lose."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import luciole
from luciole.ir import Array, Model
from luciole.lquantizer import QuantizeError
from luciole.lquantizer.judging.judge import RIGHT
from luciole.lquantizer.search.options import SearchOptions
from luciole.lquantizer.search.result import SearchResult
from tests.networks import network, random

X = random(1, 60, 40)
JUDGES = slice(4, None, 5)
OPTIONS = ("levels:w1a2", "levels:w2a4", "dynamic:int8", "float")
METRIC = """
import numpy

def closeness(answers, labels):
    return 10 - float(numpy.abs(answers - labels).mean())
"""


def options(**changes: object) -> SearchOptions:
    settings = {"evaluations": 6, "options": OPTIONS, "files": 4, "few": 20, **changes}
    return SearchOptions(**settings)  # type: ignore[arg-type]  # the names are fields


def model() -> Model:
    return network((40, 16, 4))


def numbers(one: Model) -> Array:
    interpreter = luciole.Interpreter(one)
    return np.concatenate([next(iter(interpreter.run({"x": x[None]}).values())) for x in X[JUDGES]])


def source(folder: Path) -> str:
    path = folder / "closeness.py"
    path.write_text(METRIC)
    return f"{path}:closeness"


def silent(line: str) -> None:
    """Tell nobody."""


def check_files(result: SearchResult, wanted: Array) -> None:
    """Compare what each file is said to lose with what it does."""
    before = np.abs(numbers(model()) - wanted).mean()
    assert result.unit == "of closeness lost"
    for file in result.front:
        lost = np.abs(numbers(luciole.load(file.path)) - wanted).mean() - before
        assert file.found.drop == pytest.approx(lost, abs=1e-5)
        assert file.found.loss == pytest.approx(max(lost, 0) / (10 - before), abs=1e-5)


TARGETS = random(9, 60, 4)


@pytest.fixture(scope="module")
def by_metric(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, SearchResult]:
    """A folder that was searched with labels and a metric."""
    folder = tmp_path_factory.mktemp("metric")
    return folder, luciole.search(
        model(), X, folder, options(), labels=TARGETS, metric=source(folder), say=silent
    )


def test_a_metric_judges_files_by_labels(by_metric: tuple[Path, SearchResult]) -> None:
    _, search = by_metric
    check_files(search, TARGETS[JUDGES])
    assert search.rows()[0][4] == "of closeness lost"


def test_workers_load_the_metric_too(tmp_path: Path) -> None:
    search = luciole.search(
        model(), X, tmp_path, options(workers=2), metric=source(tmp_path), say=silent
    )
    check_files(search, numbers(model()))


def test_labels_judge_right_answers(tmp_path: Path) -> None:
    interpreter = luciole.Interpreter(model())
    right = np.array([next(iter(interpreter.run({"x": x[None]}).values())).argmax() for x in X])
    right[4] = (right[4] + 1) % 4
    search = luciole.search(model(), X, tmp_path, options(), labels=right, say=silent)
    assert search.unit == RIGHT
    for file in search.front:
        share = np.mean(numbers(luciole.load(file.path)).argmax(-1) == right[JUDGES])
        assert file.found.loss == pytest.approx(1 - share)
        assert file.found.drop == pytest.approx(100 * (11 / 12 - share))


def test_files_keep_to_a_target_drop(tmp_path: Path) -> None:
    search = luciole.search(model(), X, tmp_path, options(target_drop=9.0), say=silent)
    drops = [file.found.drop for file in search.front]
    assert drops
    assert all(drop is not None and drop <= 9 for drop in drops)
    assert {path.name for path in tmp_path.glob("front-*.circle")} == {
        file.path.name for file in search.front
    }


def test_a_search_refuses_a_target_that_no_file_keeps(tmp_path: Path) -> None:
    only = options(options=("levels:w1a1", "levels:w1a2"), target_drop=0.0, evaluations=2)
    with pytest.raises(QuantizeError, match="no network keeps to the target: the best one has"):
        luciole.search(model(), X, tmp_path, only, say=silent)


def test_a_search_refuses_a_metric_that_workers_cannot_find(tmp_path: Path) -> None:
    with pytest.raises(QuantizeError, match="cannot be sent to other processes"):
        luciole.search(
            model(), X, tmp_path, options(workers=2), metric=lambda a, b: 0.0, say=silent
        )


def test_a_folder_refuses_a_search_by_another_metric(by_metric: tuple[Path, SearchResult]) -> None:
    folder, _ = by_metric
    with pytest.raises(QuantizeError, match="a search with other records, labels or metric"):
        luciole.search(model(), X, folder, options(), say=silent)
