"""Watch the ranges and the means of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from luciole.interpreter.records import Records
from luciole.ir import Array, Model, Value
from luciole.lquantizer.calibration.watch import watched


@dataclass(frozen=True)
class Statistics:
    """The smallest and the largest element of a tensor over all records, and the mean [channels] of
    each index of its last axis.
    """

    low: float
    high: float
    means: Array


def statistics(
    model: Model, values: Sequence[Value], records: Records, batch: int
) -> list[Statistics]:
    """Run a model's main graph once over all records and return the statistics of some tensors.

    Raises QuantizeError where NaN or infinity appears.
    """
    running = [_Running() for _ in values]
    for _, arrays in watched(model, values, records, batch):
        for summary, array in zip(running, arrays, strict=True):
            summary.add(array)
    return [summary.statistics() for summary in running]


class _Running:
    """The statistics of the batches that came so far."""

    def __init__(self) -> None:
        self.low, self.high, self.count = np.inf, -np.inf, 0
        self.total: Array = np.zeros(())

    def add(self, array: Array) -> None:
        """Take in a batch."""
        rows = array.reshape(-1, array.shape[-1])
        self.low = min(self.low, float(rows.min()))
        self.high = max(self.high, float(rows.max()))
        self.total = self.total + rows.sum(0, dtype=np.float64)
        self.count += len(rows)

    def statistics(self) -> Statistics:
        """Return the statistics of all batches."""
        return Statistics(self.low, self.high, self.total / self.count)
