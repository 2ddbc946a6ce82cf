"""Thin a front to the few candidates that dominate most.

Beume, Naujoks, Emmerich: SMS-EMOA: Multiobjective selection based on dominated hypervolume,
European Journal of Operational Research 181(3), 2007.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from luciole.lquantizer.search.nsga2 import Indices, Objectives, hypervolume, spread

_MOST = 60
"""Candidates beside those that are kept: of longer fronts the most crowded are not looked at."""


def largest(
    objectives: Objectives,
    reference: Sequence[float],
    count: int,
    needs: Sequence[NDArray[np.bool_]] = (),
) -> Indices:
    """Thin a front [n, m] to ``count`` candidates that dominate nearly the most within a reference
    point [m]: again and again the one goes without which the hypervolume shrinks least.

    Each of ``needs`` [n] says who meets it: the last one who does goes only when all others are
    needed as well, and the last one for the first need at the very end.
    """
    needed = np.array(needs, bool).reshape(len(needs), len(objectives))
    stays = _few(objectives, count, needed)
    missed = np.zeros(len(objectives))
    while stays.sum() > count:
        stays[_least_missed(objectives, reference, stays, _free(stays, needed), missed)] = False
    return np.flatnonzero(stays)


def _few(objectives: Objectives, count: int, needed: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Begin with the less crowded candidates, and for each need the first one that meets it."""
    stays = np.zeros(len(objectives), bool)
    stays[spread(objectives, count + _MOST)] = True
    stays[[int(need.argmax()) for need in needed if need.any()]] = True
    return stays


def _free(stays: NDArray[np.bool_], needed: NDArray[np.bool_]) -> Indices:
    """Find who may go."""
    for held in (needed, needed[:1]):
        last = held[(held & stays).sum(1) == 1].any(0)
        if (stays & ~last).any():
            return np.flatnonzero(stays & ~last)
    return np.flatnonzero(stays)


def _least_missed(
    objectives: Objectives,
    reference: Sequence[float],
    stays: NDArray[np.bool_],
    free: Indices,
    missed: NDArray[np.float64],
) -> int:
    """Find who alone dominates least. ``missed`` [n] is what each did when there were more, and
    becomes what it does: that only grows, so that few are measured again.
    """
    known: set[int] = set()
    while True:
        one = int(free[missed[free].argmin()])
        if one in known:
            return one
        missed[one] = _alone(objectives, reference, stays, one)
        known.add(one)


def _alone(
    objectives: Objectives, reference: Sequence[float], stays: NDArray[np.bool_], one: int
) -> float:
    """Measure the volume that one candidate alone dominates."""
    others = stays.copy()
    others[one] = False
    shared = np.maximum(objectives[others], objectives[one])
    return hypervolume(objectives[one : one + 1], reference) - hypervolume(shared, reference)
