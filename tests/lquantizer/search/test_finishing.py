"""Fronts that are fine-tuned without labels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import luciole
from luciole.lquantizer import QuantizeError
from luciole.lquantizer.judging.records import Judges
from luciole.lquantizer.search.evaluate import Bench
from luciole.lquantizer.search.finishing import Finish, finished, is_finish
from luciole.lquantizer.search.options import SearchOptions
from luciole.lquantizer.search.result import SearchResult
from tests.networks import network, random, two_outputs

X = random(1, 160, 40)
SIZES = (40, 24, 4)
FIT = SearchOptions(
    evaluations=6,
    options=("levels:w1a2", "levels:w2a4", "dynamic:int8", "float"),
    files=2,
    few=20,
    judges=40,
)
TUNED = replace(FIT, finish="finetune:5")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, SearchResult, SearchResult]:
    """A folder whose front was fitted, and then, by another call, fine-tuned."""
    folder = tmp_path_factory.mktemp("front")
    first = luciole.search(network(SIZES), X, folder, FIT, say=lambda line: None)
    return folder, first, luciole.search(network(SIZES), X, folder, TUNED, say=lambda line: None)


def test_a_file_is_never_worse_than_it_was_and_says_both(
    found: tuple[Path, SearchResult, SearchResult],
) -> None:
    _, fitted, tuned = found
    before = {file.found.candidate: file.found for file in fitted.front}
    assert tuned.front
    for file in tuned.front:
        was = file.found.before
        assert was == before[file.found.candidate]
        assert file.found.loss <= was.loss
    assert any(file.found.loss < before[file.found.candidate].loss for file in tuned.front)
    assert {"loss before", "agreement before"} <= set(tuned.rows()[0])
    assert tuned.to_json()["front"][0]["before"]["loss"] == tuned.front[0].found.before.loss  # type: ignore[union-attr]  # it was seen above


def test_files_compute_what_was_judged(found: tuple[Path, SearchResult, SearchResult]) -> None:
    _, _, tuned = found
    order = np.arange(4, len(X), 5)
    wanted = luciole.Interpreter(network(SIZES)).run({"x": X[order]})["fc2"]
    for file in tuned.front:
        model = luciole.load(file.path)
        answers = luciole.Interpreter(model).run({"x": X[order]})[model.graph.outputs[0].name]
        loss = np.square(answers - wanted).mean() / wanted.var()
        assert file.found.loss == pytest.approx(loss, rel=1e-3, abs=1e-9)


def test_what_was_trained_is_not_trained_again(
    found: tuple[Path, SearchResult, SearchResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, _, tuned = found
    monkeypatch.setattr("luciole.lquantizer.search.evaluator.finished", lambda *given: 1 / 0)
    again = luciole.search(network(SIZES), X, folder, TUNED, say=lambda line: None)
    assert [file.found for file in again.front] == [file.found for file in tuned.front]


def test_what_cannot_be_trained_stays_as_it_was(tmp_path: Path) -> None:
    lines: list[str] = []
    only = replace(TUNED, options=("dynamic:int8", "float16", "float"), evaluations=5)
    result = luciole.search(network(SIZES), X, tmp_path, only, say=lines.append)
    assert all(file.found.loss == file.found.before.loss for file in result.front)  # type: ignore[union-attr]  # every one was tried
    assert any("stays as it was fitted" in line for line in lines)


def test_several_outputs_are_trained_together() -> None:
    """Neither of the two is a class's answer: their squared errors are summed. Few records would
    judge by chance: 400 do.
    """
    records = {"x": random(3, 400, 20)}
    model = two_outputs()
    bench = Bench(model, records, Judges({"x": random(4, 400, 20)}), size=lambda made: 0)
    chosen = {"fc1": "levels:w1a2", "fc2": "dynamic:int8"}
    tuned = finished(bench, chosen, records, Finish(12))
    assert bench.figures(tuned, 0).loss < bench.figures(bench.fit(chosen).model, 0).loss
    kinds = {op.name: op.kind for op in tuned.graph.ops}
    assert sorted(kinds.values()) == ["FULLY_CONNECTED", "LQ_FULLY_CONNECTED", "TANH"]


def test_it_reads_how_to_finish() -> None:
    assert Finish.parse("finetune:4,mirror") == Finish(4, True)
    assert Finish.parse("fit").epochs == 0
    assert Finish.parse(Finish(4, True).stage) == Finish(4, True)
    assert is_finish("finetune:4")
    assert not is_finish("fitted")
    for text in ("finetune", "finetune:0", "finetune:x", "train:3"):
        with pytest.raises(QuantizeError, match="finetune:EPOCHS"):
            SearchOptions(finish=text)
