"""``luciole eval``: the confusion matrix and the figures of single classes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import luciole
from luciole.tools.confusion import class_figures, class_rows, confusion_of
from luciole.tools.random_models import dense
from tests.networks import random
from tests.tools.running import call

Capture = pytest.CaptureFixture[str]
ARGV = ("eval", "model.circle", "--data", "test.npz")


def test_json_counts_labels_against_answers(capsys: Capture, folder: Path) -> None:
    figures = json.loads(call(capsys, *ARGV, "--json").out)
    answers = luciole.Interpreter("model.circle").run(random(50, 60, 20))["fc2"].argmax(1)
    with np.load("test.npz") as data:
        labels = data["y_test"]
    wanted = [[int(np.sum((labels == r) & (answers == c))) for c in range(4)] for r in range(4)]
    assert figures["confusion"] == wanted
    assert [c["label"] for c in figures["classes"]] == [0, 1, 2, 3]
    assert [c["records"] for c in figures["classes"]] == np.bincount(labels).tolist()
    for number, found in enumerate(figures["classes"]):
        right = labels == answers
        of_class, answered = right[labels == number], right[answers == number]
        assert found["recall"] == pytest.approx(of_class.mean())
        assert found["precision"] == (pytest.approx(answered.mean()) if len(answered) else None)


def test_without_labels_json_has_no_confusion(capsys: Capture, folder: Path) -> None:
    figures = json.loads(call(capsys, "eval", "model.circle", "--data", "train.npy", "--json").out)
    assert (figures["confusion"], figures["classes"]) == (None, None)


def test_per_class_prints_a_table(capsys: Capture, folder: Path) -> None:
    assert "class" not in call(capsys, *ARGV).out
    lines = call(capsys, *ARGV, "--per-class").out.splitlines()
    assert lines[:2] == ["records    60", "top-1      75.00 %"]
    assert lines[-5].split("  ")[0] == "class"
    assert [line.split()[0] for line in lines[-4:]] == ["0", "1", "2", "3"]


def test_rows_of_a_table_by_hand() -> None:
    labels, answers = np.array([0, 0, 0, 0, 1, 1]), np.array([0, 3, 3, 1, 1, 1])
    confusion = confusion_of(labels, answers)
    assert confusion is not None
    assert confusion.tolist() == [[1, 1, 0, 2], [0, 2, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    assert class_rows(confusion)[1:] == [
        ("0", "4", "25.00 %", "100.00 %", "3 (2x)"),
        ("1", "2", "100.00 %", "66.67 %", "-"),
        ("2", "0", "-", "-", "-"),
        ("3", "0", "-", "0.00 %", "-"),
    ]
    assert [c.recall for c in class_figures(confusion)] == [0.25, 1.0, None, None]


@pytest.mark.parametrize("labels", [[0, -1], [0, 0.5], [0, np.nan], [0, 1000]])
def test_labels_that_are_no_class_numbers_below_1000_give_no_matrix(labels: list[float]) -> None:
    assert confusion_of(np.array(labels), np.array([0, 1])) is None


def test_1000_classes_give_a_matrix() -> None:
    confusion = confusion_of(np.array([0.0, 999.0]), np.array([0, 1]))
    assert confusion is not None
    assert confusion.shape == (1000, 1000)
    assert confusion_of(np.array([0, 1]), np.array([0, 1000])) is None


def test_too_many_classes_keep_the_other_figures(capsys: Capture, folder: Path) -> None:
    luciole.save(dense((20, 1001)), "wide.circle")
    np.save("labels.npy", np.full(60, 1000))
    argv = ("eval", "wide.circle", "--data", "train.npy", "--labels", "labels.npy")
    outcome = call(capsys, *argv, "--per-class")
    assert outcome.code == 0
    assert outcome.out.splitlines()[1] == "top-1      1.67 %"  # one of 60 answers is 1000
    assert "labels and answers must be class numbers from 0 to 999" in outcome.err
    figures = json.loads(call(capsys, *argv, "--json").out)
    assert (figures["confusion"], figures["classes"]) == (None, None)


def test_eval_refuses_labels_that_are_no_class(capsys: Capture, folder: Path) -> None:
    np.save("labels.npy", np.arange(60))
    argv = ("eval", "model.circle", "--data", "train.npy", "--labels", "labels.npy")
    text = "record 4 has label 4, output 'b' has 4 classes: 0 to 3"
    assert text in call(capsys, *argv).error(2)


@pytest.mark.parametrize("option", [["--per-class"], ["--ignore-label", "0"]])
def test_eval_refuses_data_without_labels(capsys: Capture, folder: Path, option: list[str]) -> None:
    outcome = call(capsys, "eval", "model.circle", "--data", "train.npy", *option)
    assert outcome.error(2).startswith(f"{option[0]} needs labels: the data has none")


@pytest.mark.parametrize(("ignored", "dtype"), [(255, np.uint8), (-1, np.int64)])
def test_answers_of_an_ignored_label_count_nowhere(
    capsys: Capture, folder: Path, ignored: int, dtype: type
) -> None:
    """The first half, labelled so, is wrong throughout; of the other half one is right in two."""
    records = np.load("train.npy")[:60]
    luciole.save(dense((20, 4), seed=3), "other.circle")
    answers, others = (
        next(iter(luciole.run(name, records).values())).argmax(1)
        for name in ("model.circle", "other.circle")
    )
    labels = answers.copy()
    labels[31::2] = (labels[31::2] + 1) % 4
    labels[:30] = np.array(ignored).astype(np.int64)
    np.save("labels.npy", labels.astype(dtype))
    np.save("records.npy", records)
    argv = ("eval", "model.circle", "--data", "records.npy", "--labels", "labels.npy")
    named = ("--ignore-label", str(ignored), "--against", "other.circle")
    figures = json.loads(call(capsys, *argv, *named, "--json").out)
    assert (figures["records"], figures["ignored"], figures["top1"]) == (60, 30, 0.5)
    assert figures["agreement"] == np.mean(answers[30:] == others[30:])
    assert np.sum(figures["confusion"]) == 30
    assert "ignored    30 labels" in call(capsys, *argv, *named).out.splitlines()
    text = f"record 0 has label {ignored}, output 'b' has 4 classes: 0 to 3 (ignore_label, --ig"
    assert text in call(capsys, *argv).error(2)


def test_eval_refuses_to_ignore_all_labels(capsys: Capture, folder: Path) -> None:
    np.save("labels.npy", np.full(60, 255))
    argv = ("eval", "model.circle", "--data", "train.npy", "--labels", "labels.npy")
    text = "all labels are 255, which is ignored: none is left to count"
    assert call(capsys, *argv, "--ignore-label", "255").error(2) == text
