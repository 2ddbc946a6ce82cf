"""Search under a budget: the least of what costs no more than is allowed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

Step = TypeVar("Step")


def first_within(
    cost: Callable[[int], float],
    steps: int,
    target: float,
    start: int,
    below: int = -1,
    tries: int | None = None,
) -> int | None:
    """Find the first of ``steps`` steps, from the smallest to the largest, that costs at most the
    target; None where none of those that were tried does.

    Steps behind one that costs too much are tried at twice the distance each time, then the gap
    is halved. All up to ``below`` are known to cost too much. After so many ``tries`` the first one
    so far is taken.
    """
    place, above, tried = start, steps, 0
    while tries is None or tried < tries:
        if cost(place) <= target:
            above = place
        else:
            below = place
        if above - below <= 1 or below == steps - 1:
            break
        further = min(place + 2**tried, steps - 1)
        place = further if above == steps else (below + above + 1) // 2
        tried += 1
    return above if above < steps else None


def taken_away(
    fewer: Iterable[Step], cost: Callable[[Step], float], limit: float
) -> list[tuple[Step, float]]:
    """Try one after the other, from the most to the least, until one costs more than the limit;
    returns all that were tried, that one too, with their costs.
    """
    tried = []
    for one in fewer:
        tried.append((one, cost(one)))
        if tried[-1][1] > limit:
            break
    return tried
