"""Say how long operators take: medians measured here, or what a file says of another device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from luciole.interpreter import Interpreter
from luciole.interpreter.records import Records, run_records
from luciole.ir import Model

_RUNS = 100
_MOST_NS = 300_000_000
"""Time that a model is measured for, at the most and in nanoseconds."""


@dataclass(frozen=True)
class Times:
    """Microseconds by operator: kind, name, and the element types of what it reads."""

    operators: Mapping[tuple[str, ...], float]

    @property
    def total(self) -> float:
        """The whole network's."""
        return sum(self.operators.values())

    def beside(self, floats: Times) -> float:
        """Return the time beyond the float network's: only operators that one of them lacks are
        compared, so that noise of all others cancels.
        """
        new = [us for key, us in self.operators.items() if key not in floats.operators]
        gone = [us for key, us in floats.operators.items() if key not in self.operators]
        return sum(new) - sum(gone)


def measured(model: Model, records: Records) -> Times:
    """Measure the median time of each operator of a model on the first of some records."""
    interpreter = Interpreter(model)
    one = {name: array[:1] for name, array in records.items()}
    list(run_records(interpreter, one, batch=1))
    plan = interpreter.plan
    plan.run_timed()  # compiles what reads the clock
    once = max(1, int(plan.run_timed().sum()))
    runs = int(np.clip(_MOST_NS // once, 3, _RUNS))
    medians = np.median([plan.run_timed() for _ in range(runs)], 0) / 1000
    times: dict[tuple[str, ...], float] = {}
    for step, us in zip(plan.steps, medians, strict=True):
        op = step.source
        key = (op.kind, op.name, *(v.dtype.name for v in op.operands if v is not None))
        times[key] = times.get(key, 0.0) + float(us)
    return Times(times)
