"""How fast a fine-tuning learns is chosen by short trials, and one that is too fast is slowed."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from luciole.lquantizer.training import FinetuneSettings, finetune, settings, train
from luciole.lquantizer.training.rate import chosen_factor, steps_of
from tests.lquantizer.training.models import constants, regression


@pytest.mark.parametrize(
    ("best", "wanted"), [(1.0, 1.0), (0.1, 0.1), (0.03, 10**-1.5), (10.0, 1.0)]
)
def test_rates_fall_as_long_as_that_helps(best: float, wanted: float) -> None:
    found = chosen_factor(lambda factor: 1 + abs(math.log10(factor / best)), start=3.0)
    assert found == pytest.approx(wanted)


def test_rates_fall_until_something_helps() -> None:
    """The first trials lose, the first of them even a little less than the second."""
    losses = {0: 5.0, -1: 6.0, -2: math.nan, -3: 0.9, -4: 0.8, -5: 0.95}
    found = chosen_factor(lambda factor: losses[round(2 * math.log10(factor))], start=1.0)
    assert found == pytest.approx(0.01)


def test_usual_rates_stay_where_all_are_alike() -> None:
    assert chosen_factor(lambda factor: 2.0, start=1.0) == 1.0


def test_a_trial_is_a_small_part_of_a_training() -> None:
    assert [steps_of(n) for n in (1, 8, 100, 4000)] == [1, 2, 25, 100]


def test_usual_rates_that_are_far_too_high_are_no_obstacle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "RATES", tuple(30 * rate for rate in settings.RATES))
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

    def noted(trial: Callable[[float], float], start: float) -> float:
        kept.append(chosen_factor(trial, start))
        return kept[-1]

    teacher, student, records = regression()
    found = []
    for choose in (noted, lambda trial, start: kept[0]):
        monkeypatch.setattr(train, "chosen_factor", choose)
        found.append(constants(finetune(student, teacher, records, epochs=2).model))
    assert kept[0] < 1
    assert found[0] == found[1]
