"""Epochs judged by a metric of the user's own, and labels that are for it alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest

import luciole
from luciole.ir import Array, Model
from luciole.lquantizer import QuantizeError
from luciole.lquantizer.training import Epoch, FinetuneResult, FinetuneSettings
from luciole.lquantizer.training.parameters import trained_ops
from tests.lquantizer.training.models import data_of, regression, run

SETTINGS = FinetuneSettings(learning_rate=3e-3, batch=50)


def negative_error(answers: Array, labels: Array) -> float:
    return -float(np.abs(answers - labels).mean())


@cache
def by_teacher() -> tuple[FinetuneResult, Model, dict[str, Array]]:
    """A run whose epochs the metric judges by the teacher's answers."""
    return tuned()


def tuned(labels: Array | None = None) -> tuple[FinetuneResult, Model, dict[str, Array]]:
    teacher, student, records = regression()
    (op,) = trained_ops(student.graph)
    op.weights_scales.set_data(data_of(op, "weights_scales") * np.float32(0.5))
    result = luciole.finetune(
        student,
        teacher,
        records,
        epochs=3,
        labels=labels,
        metric=negative_error,
        settings=SETTINGS,
        proof=False,
    )
    return result, teacher, records


def figures(history: Sequence[Epoch]) -> list[float]:
    return [epoch.metric for epoch in history if epoch.metric is not None]


def test_the_epoch_with_the_best_metric_is_kept() -> None:
    result, teacher, records = by_teacher()
    found = figures(result.history)
    assert len(found) == 4
    assert result.best.metric == max(found)
    held = {"x": records["x"][result.held_back]}
    figure = negative_error(run(result.model, held), run(teacher, held))
    assert result.best.metric == pytest.approx(figure, rel=1e-3)
    assert result.history[0].judgement().startswith("metric -")


def test_labels_that_are_no_classes_judge_alone() -> None:
    _, _, records = regression()
    targets = np.random.default_rng(3).normal(0, 1, (1200, 3)).astype(np.float32)
    by_labels, _, _ = tuned(targets)
    plain, _, _ = by_teacher()
    assert [e.loss for e in by_labels.history] == [e.loss for e in plain.history]
    assert by_labels.best.accuracy is None
    held = {"x": records["x"][by_labels.held_back]}
    figure = negative_error(run(by_labels.model, held), targets[by_labels.held_back])
    assert by_labels.best.metric == pytest.approx(figure, rel=1e-3)


def test_training_refuses_a_metric_that_fails() -> None:
    teacher, student, records = regression()

    def broken(answers: Array, labels: Array) -> str:
        return "good"

    with pytest.raises(QuantizeError, match="metric broken returned 'good'"):
        luciole.finetune(student, teacher, records, epochs=1, metric=broken, proof=False)


def test_a_metric_decides_where_it_differs() -> None:
    better, worse = Epoch(1, None, 0.9, None, 0, metric=2.0), Epoch(0, None, 0.1, None, 0, metric=1)
    assert better.is_better_than(worse, 100)
    assert not worse.is_better_than(better, 100)
    same = Epoch(1, None, 0.05, None, 0, metric=1.0)
    assert same.is_better_than(worse, 100)
