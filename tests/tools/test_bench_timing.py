"""Samples, limits and percentiles, by a clock that the calls themselves turn on."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable
from itertools import cycle
from statistics import fmean, median, pstdev, quantiles

import pytest

from luciole.tools.common.timing import (
    SAMPLE_NS,
    TURN,
    Limits,
    Timing,
    interleaved_medians,
    measured,
)
from tests.tools.bench_support import NOW


class Clock:
    """A clock that stands still but for what calls take."""

    def __init__(self) -> None:
        self.now = 0
        self.called: list[str] = []

    def __call__(self) -> int:
        return self.now

    def call(self, durations: Iterable[int], name: str = "") -> Callable[[], None]:
        """A call that takes these nanoseconds in turn."""
        turns = cycle(durations)

        def run() -> None:
            self.called.append(name)
            self.now += next(turns)

        return run


def test_a_sample_of_short_calls_is_a_mean() -> None:
    clock = Clock()
    (timing,) = measured([clock.call([1000])], NOW, rounds=3, clock=clock)
    assert timing.calls == SAMPLE_NS // 1000 == 50
    assert timing.samples.tolist() == [1.0] * 3 * TURN
    assert (timing.runs, len(clock.called)) == (1500, 1501)


def test_a_sample_of_a_long_call_is_one() -> None:
    clock = Clock()
    (timing,) = measured([clock.call([80_000])], NOW, rounds=4, clock=clock)
    assert (timing.calls, timing.runs) == (1, 4 * TURN)
    assert timing.median_us == 80


def test_figures_are_those_of_the_samples() -> None:
    durations = [90_000, *((100_000 + 7919 * i * i % 50_000) for i in range(100))]
    clock = Clock()
    (timing,) = measured([clock.call(durations)], NOW, rounds=10, clock=clock)
    samples = [duration / 1000 for duration in durations[1:]]
    percentiles = quantiles(samples, n=100, method="inclusive")
    found = timing.to_json()
    assert found["median_us"] == pytest.approx(median(samples))
    assert found["p90_us"] == pytest.approx(percentiles[89])
    assert found["p99_us"] == pytest.approx(percentiles[98])
    assert found["min_us"] == min(samples)
    assert found["mean_us"] == pytest.approx(fmean(samples))
    assert found["std_us"] == pytest.approx(pstdev(samples))
    assert timing.spread == pytest.approx((percentiles[74] - percentiles[24]) / median(samples))


def test_calls_take_turns_and_each_is_warmed_before_its_samples() -> None:
    clock = Clock()
    calls = [clock.call([60_000], "a"), clock.call([70_000], "b")]
    timings = measured(calls, NOW, rounds=2, clock=clock)
    turn = 2 * TURN  # untimed, then timed
    assert "".join(clock.called) == "ab" + ("a" * turn + "b" * turn) * 2
    assert [timing.median_us for timing in timings] == [60, 70]
    assert [timing.runs for timing in timings] == [2 * TURN] * 2


def test_a_turn_of_slow_calls_is_short() -> None:
    clock = Clock()
    calls = [clock.call([8_000_000], "a"), clock.call([25_000_000], "b")]
    measured(calls, NOW, clock=clock)
    assert "".join(clock.called) == "ab" + "aaa" + "aaa" + "b" + "b"


def test_every_round_is_announced() -> None:
    clock, rounds = Clock(), list[int]()
    measured([clock.call([60_000])], NOW, rounds=3, before=rounds.append, clock=clock)
    assert rounds == [0, 1, 2]


@pytest.mark.parametrize(
    ("limits", "rounds"),
    [
        (Limits(runs=5, min_seconds=0, warmup_seconds=0), 5),
        (Limits(runs=1, min_seconds=7.5, warmup_seconds=0), 8),
        (Limits(runs=50, min_seconds=100, max_seconds=3, warmup_seconds=0), 3),
    ],
)
def test_limits(limits: Limits, rounds: int) -> None:
    clock = Clock()
    (timing,) = measured([clock.call([1_000_000_000])], limits, clock=clock)
    assert timing.runs == rounds


def test_warming_up_takes_both_runs_and_seconds() -> None:
    for limits, calls in (
        (Limits(runs=1, min_seconds=0, warmup_runs=4, warmup_seconds=0), 5),
        (Limits(runs=1, min_seconds=0, warmup_runs=0, warmup_seconds=6), 6),
    ):
        clock = Clock()
        measured([clock.call([1_000_000_000])], limits, clock=clock)
        assert len(clock.called) == calls + 1


def test_the_garbage_collector_rests_only_meanwhile() -> None:
    seen: list[bool] = []
    clock = Clock()
    turn = clock.call([60_000])

    def call() -> None:
        seen.append(gc.isenabled())
        turn()

    measured([call], NOW, clock=clock)
    assert seen == [True] + TURN * [False]
    assert gc.isenabled()


def test_medians_of_real_calls_are_positive() -> None:
    found = interleaved_medians([lambda: None, lambda: sum(range(3000))], rounds=5)
    assert len(found) == 2
    assert 0 < found[0] < found[1]


def test_json_figures_need_no_special_numbers() -> None:
    import numpy as np

    figures = Timing(np.array([2.0])).to_json()
    assert figures["std_us"] == 0
    assert figures["median_us"] == figures["p99_us"] == 2
