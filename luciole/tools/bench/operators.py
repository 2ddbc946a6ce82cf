"""Measure how long each operator of a model takes, and kinds of operators together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Op
from luciole.tools.bench.ours import Luciole
from luciole.tools.common.timing import Limits


@dataclass(frozen=True)
class OperatorTime:
    """One operator, in execution order. ``share`` is its part of all medians' sum, ``cumulative``
    that of it and all before it, both from 0 to 1. ``native`` tells compiled kernels from
    NumPy, and ``reason`` says why NumPy runs.
    """

    index: int
    name: str
    kind: str
    median_us: float
    min_us: float
    share: float
    cumulative: float
    native: bool
    reason: str = ""


@dataclass(frozen=True)
class KindTime:
    """All operators of a kind: how many, the sum of their medians, its share and the shares summed
    up to it.
    """

    kind: str
    count: int
    median_us: float
    share: float
    cumulative: float


@dataclass(frozen=True)
class Profile:
    """Operators in execution order and the times behind them: [runs, operators] in
    microseconds.
    """

    operators: list[OperatorTime]
    times: NDArray[np.float64]


def profile(runtime: Luciole, limits: Limits) -> Profile:
    """Run the model with the clock read between operators: at least ``limits.runs`` times and for
    half of ``limits.min_seconds``, but at most 1000 times.
    """
    plan = runtime.plan
    plan.run_timed()  # compiles what reads the clock
    once = max(1, int(plan.run_timed().sum()))
    runs = min(1000, max(limits.runs, int(limits.min_seconds / 2 * 1e9) // once))
    times = np.stack([plan.run_timed() for _ in range(runs)]) / 1000
    return Profile(
        operator_times(
            [step.source for step in plan.steps],
            times,
            [step.native is not None or step.nothing_to_do for step in plan.steps],
            [step.reason for step in plan.steps],
        ),
        times,
    )


def operator_times(
    ops: Sequence[Op],
    times: NDArray[np.float64],
    native: Sequence[bool],
    reasons: Sequence[str],
) -> list[OperatorTime]:
    """Compute medians, shares and sums from times [runs, operators] in microseconds."""
    medians, fastest = np.median(times, 0), times.min(0)
    shares = shares_of(medians)
    sums = np.cumsum(shares)
    return [
        OperatorTime(
            i,
            op.name,
            op.kind,
            float(medians[i]),
            float(fastest[i]),
            float(shares[i]),
            float(sums[i]),
            bool(native[i]),
            reasons[i],
        )
        for i, op in enumerate(ops)
    ]


def by_kind(operators: Sequence[OperatorTime]) -> list[KindTime]:
    """Sum the kinds of operators, the one that takes longest first."""
    kinds = dict.fromkeys(operator.kind for operator in operators)
    sums = {k: sum(o.median_us for o in operators if o.kind == k) for k in kinds}
    order = sorted(kinds, key=lambda kind: -sums[kind])
    shares = shares_of(np.array([sums[kind] for kind in order]))
    return [
        KindTime(
            kind, sum(o.kind == kind for o in operators), sums[kind], float(share), float(until)
        )
        for kind, share, until in zip(order, shares, np.cumsum(shares), strict=True)
    ]


def shares_of(times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Divide each time by their sum; 0 where there is none."""
    total = float(times.sum())
    return times / total if total else np.zeros_like(times)
