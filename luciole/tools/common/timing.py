"""Measure how long calls take: taken turn by turn, so that a machine's slow moments hit all of
them.

A sample is the mean duration of as many calls in a row as take SAMPLE_NS together, so that reading
the clock (some 50 ns) does not count beside a call of a microsecond; of slow calls it is one. In a
turn a call runs untimed first, until the caches hold again what others pushed out (a 4096x4096
layer of 2 bits needs ten runs until it is as fast as on its own), and then gives several samples.
"""

from __future__ import annotations

import gc
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, repeat

import numpy as np
from numpy.typing import NDArray

Call = Callable[[], object]
Clock = Callable[[], int]
"""Nanoseconds since some moment."""

SAMPLE_NS, MOST_CALLS = 50_000, 10_000
TURN, TURN_NS = 10, 20_000_000
"""Untimed runs, and samples, of a turn: TURN of each, or fewer where they take longer than
``TURN_NS``.
"""

ROUNDS, ROUND_SECONDS = 100, 3.0


@dataclass(frozen=True)
class Limits:
    """When warming up and measuring end: after both a number of runs and a number of seconds of
    each call on average, and never later than after ``max_seconds``.
    """

    runs: int = 50
    min_seconds: float = 1.0
    max_seconds: float = 150.0
    warmup_runs: int = 1
    warmup_seconds: float = 0.5


class Timed(ABC):
    """A call that is timed turn by turn, wherever it runs."""

    @abstractmethod
    def warm_up(self, limits: Limits) -> int:
        """Run the call until it is warm; return how many runs make a sample."""

    @abstractmethod
    def until_warm(self) -> None:
        """Do the untimed runs of a turn."""

    @abstractmethod
    def turn(self, size: int) -> list[float]:
        """Take the samples of a turn, each of ``size`` runs, in nanoseconds for a run."""


@dataclass(frozen=True)
class Here(Timed):
    """A call of this process."""

    call: Call
    clock: Clock = time.perf_counter_ns

    def warm_up(self, limits: Limits) -> int:
        """Run the call until it is warm; return how many runs make a sample."""
        begun, fastest = self.clock(), MOST_CALLS * SAMPLE_NS
        for number in count(1):
            before = self.clock()
            self.call()
            now = self.clock()
            fastest = min(fastest, now - before)
            if number > limits.warmup_runs and now - begun >= limits.warmup_seconds * 1e9:
                break
        return min(MOST_CALLS, -(-SAMPLE_NS // max(fastest, 1)))

    def until_warm(self) -> None:
        """Do the untimed runs of a turn."""
        call, clock = self.call, self.clock
        begun = clock()
        for _ in range(TURN):
            call()
            if clock() - begun >= TURN_NS:
                break

    def turn(self, size: int) -> list[float]:
        """Take the samples of a turn, in nanoseconds for each run."""
        call, clock = self.call, self.clock
        samples = []
        begun = before = clock()
        for _ in range(TURN):
            for _ in repeat(None, size):
                call()
            now = clock()
            samples.append((now - before) / size)
            if now - begun >= TURN_NS:
                break
            before = now
        return samples


@dataclass(frozen=True)
class Timing:
    """The samples of one call, in microseconds for each run, and how many runs a sample has."""

    samples: NDArray[np.float64]
    calls: int = 1

    @property
    def runs(self) -> int:
        """How often the call was run and timed."""
        return self.calls * len(self.samples)

    @property
    def median_us(self) -> float:
        """Half of the samples took no longer."""
        return self.percentile(50)

    @property
    def min_us(self) -> float:
        """The quickest sample."""
        return float(self.samples.min())

    @property
    def mean_us(self) -> float:
        """The mean of all samples."""
        return float(self.samples.mean())

    @property
    def std_us(self) -> float:
        """The standard deviation of the samples."""
        return float(self.samples.std())

    @property
    def spread(self) -> float:
        """The distance between the quartiles as a share of the median: above 0.1 is noise."""
        return (self.percentile(75) - self.percentile(25)) / self.median_us

    def percentile(self, percent: float) -> float:
        """Find the time that ``percent`` of the samples do not exceed, between two samples on a
        straight line.
        """
        return float(np.percentile(self.samples, percent))

    def to_json(self) -> dict[str, float | int]:
        """Turn all figures into JSON values."""
        return {
            "median_us": self.median_us,
            "p90_us": self.percentile(90),
            "p99_us": self.percentile(99),
            "min_us": self.min_us,
            "mean_us": self.mean_us,
            "std_us": self.std_us,
            "runs": self.runs,
            "runs_per_sample": self.calls,
        }


def interleaved_medians(calls: Sequence[Call], rounds: int = ROUNDS) -> list[float]:
    """Measure the median duration of each call in microseconds, of ``rounds`` turns or of as many
    as fit into ROUND_SECONDS for each.
    """
    seconds = ROUND_SECONDS * len(calls)
    limits = Limits(1, min_seconds=0, max_seconds=seconds, warmup_runs=20, warmup_seconds=0)
    return [timing.median_us for timing in measured(calls, limits, rounds=rounds)]


def measured(
    calls: Sequence[Call | Timed],
    limits: Limits | None = None,
    *,
    rounds: int = 1,
    before: Callable[[int], object] | None = None,
    clock: Clock = time.perf_counter_ns,
) -> list[Timing]:
    """Time calls turn by turn, at least ``rounds`` turns of each, until ``limits`` are reached.

    ``before`` is given the round's number and may change what the calls work on. The garbage
    collector rests meanwhile.
    """
    limits = limits or Limits()
    timed = [call if isinstance(call, Timed) else Here(call, clock) for call in calls]
    sizes = [call.warm_up(limits) for call in timed]
    samples: list[list[float]] = [[] for _ in calls]
    with garbage_kept():
        begun = clock()
        for number in count():
            if before is not None:
                before(number)
            _round(timed, sizes, samples)
            seconds = (clock() - begun) / 1e9
            runs = min(len(kept) * size for kept, size in zip(samples, sizes, strict=True))
            enough = number + 1 >= rounds and runs >= limits.runs
            least = limits.min_seconds * len(calls) if enough else limits.max_seconds
            if seconds >= min(least, limits.max_seconds):
                break
    return [Timing(np.array(kept) / 1000, size) for kept, size in zip(samples, sizes, strict=True)]


def _round(calls: Sequence[Timed], sizes: Sequence[int], samples: Sequence[list[float]]) -> None:
    """Give each call a turn, and add its time to its samples."""
    for call, size, kept in zip(calls, sizes, samples, strict=True):
        if len(calls) > 1:
            call.until_warm()
        kept += call.turn(size)


@contextmanager
def garbage_kept() -> Iterator[None]:
    """Keep the garbage collector from running."""
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
