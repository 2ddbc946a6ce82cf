"""How fast a fine-tuning learns is chosen by short trials, and one that is too fast is slowed."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from luciole.lquantizer.training import FinetuneSettings, finetune, settings, train
from luciole.lquantizer.training.rate import chosen_factor, steps_of
from tests.lquantizer.training.models import constants, regression


@pytest.mark.parametrize(("good", "wanted"), [(1.0, 1.0), (0.1, 0.1), (0.04, 10**-1.5)])
def test_rates_fall_as_long_as_a_trial_loses_ground(good: float, wanted: float) -> None:
    found = chosen_factor(lambda factor: 1.0 if factor < 1.01 * good else math.nan, start=1.0)
    assert found == pytest.approx(wanted)


def test_the_highest_rate_that_does_not_lose_is_taken_and_not_the_one_that_gains_most() -> None:
    losses = {0: 5.0, -1: 1.2, -2: 0.99, -3: 0.9, -4: 0.8}

    def trial(factor: float) -> float:
        return losses[round(2 * math.log10(factor))]

    assert chosen_factor(trial, start=1.0) == pytest.approx(0.1)
    assert chosen_factor(trial, start=1.0, may_lose=0.3) == pytest.approx(10**-0.5)


def test_rates_do_not_fall_without_an_end() -> None:
    tried: list[float] = []

    def trial(factor: float) -> float:
        tried.append(factor)
        return math.inf

    assert chosen_factor(trial, start=1.0) == pytest.approx(1e-3)
    assert len(tried) == 6


def test_a_trial_is_a_small_part_of_a_training() -> None:
    assert [steps_of(n) for n in (1, 8, 100, 4000)] == [1, 2, 25, 100]


def test_usual_rates_that_are_far_too_high_are_no_obstacle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "RATES", tuple(300 * rate for rate in settings.RATES))
    teacher, student, records = regression()
    lines: list[str] = []
    result = finetune(student, teacher, records, epochs=3, report=lines.append)
    assert lines[1].startswith("weights learn at 0.")
    fixed = FinetuneSettings(learning_rate=settings.RATES[1])
    stuck = finetune(student, teacher, records, epochs=3, settings=fixed)
    slow, fast = (r.history[-1].held_back_loss or 0.0 for r in (result, stuck))
    assert 0 < slow < fast


def test_trials_leave_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same factor without trials gives the same model."""
    monkeypatch.setattr(settings, "RATES", (0.01,) * 4)
    kept: list[float] = []

    def noted(trial: Callable[[float], float], start: float, may_lose: float) -> float:
        kept.append(chosen_factor(trial, start, may_lose))
        return kept[-1]

    teacher, student, records = regression()
    found = []
    for choose in (noted, lambda trial, start, may_lose: kept[0]):
        monkeypatch.setattr(train, "chosen_factor", choose)
        found.append(constants(finetune(student, teacher, records, epochs=2).model))
    assert kept[0] < 1
    assert found[0] == found[1]
