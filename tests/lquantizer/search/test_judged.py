"""Searches that labels or a metric of the user's own judge, and a bound on what files may lose."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import luciole
from luciole.ir import Model
from luciole.lquantizer import QuantizeError
from luciole.lquantizer.judging.judge import RIGHT
from luciole.lquantizer.search.options import SearchOptions
from luciole.lquantizer.search.result import SearchResult
from tests.lquantizer.search.metric_support import JUDGES, check_files, numbers, source
from tests.networks import network, random

X = random(1, 60, 40)
OPTIONS = ("levels:w1a2", "levels:w2a4", "dynamic:int8", "float")


def options(**changes: object) -> SearchOptions:
    settings = {"evaluations": 6, "options": OPTIONS, "files": 4, "few": 20, **changes}
    return SearchOptions(**settings)  # type: ignore[arg-type]  # the names are fields


def model() -> Model:
    return network((40, 16, 4))


def silent(line: str) -> None:
    """Tell nobody."""


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
    check_files(search, model(), X, TARGETS[JUDGES])
    assert search.rows()[0][4] == "of closeness lost"


def test_labels_judge_right_answers_and_files_keep_to_a_target_drop(tmp_path: Path) -> None:
    right = next(iter(luciole.Interpreter(model()).run({"x": X}).values())).argmax(-1)
    right[4] = (right[4] + 1) % 4
    search = luciole.search(model(), X, tmp_path, options(), labels=right, say=silent)
    assert search.unit == RIGHT
    for file in search.front:
        share = np.mean(numbers(luciole.load(file.path), X).argmax(-1) == right[JUDGES])
        assert file.found.loss == pytest.approx(1 - share)
        assert file.found.drop == pytest.approx(100 * (11 / 12 - share))
    all_drops = [file.found.drop or 0.0 for file in search.front]
    assert max(all_drops) > 9
    how = options(target_drop=9.0, evaluations=8)
    search = luciole.search(model(), X, tmp_path, how, labels=right, say=silent)
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
