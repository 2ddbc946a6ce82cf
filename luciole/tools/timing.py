"""How long models take: medians of interleaved runs, so that a machine's slow moments hit all of
them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import median

ROUNDS, WARM_UP = 300, 20


def interleaved_medians(calls: Sequence[Callable[[], object]], rounds: int = ROUNDS) -> list[float]:
    """The median duration of each call in microseconds, one call of each after the other,
    ``rounds`` times.
    """
    for _ in range(WARM_UP):
        for call in calls:
            call()
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, kept in zip(calls, times, strict=True):
            begun = time.perf_counter_ns()
            call()
            kept.append((time.perf_counter_ns() - begun) / 1000)
    return [median(kept) for kept in times]
