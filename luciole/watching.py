"""Count the values of inputs of layers with learned levels on real data."""

from __future__ import annotations

import numpy as np

from luciole.drawing.levels import InputHistogram, reach
from luciole.interpreter import Interpreter
from luciole.interpreter.observe import Observer
from luciole.interpreter.records import Records, batch_size, run_records
from luciole.ir import Array, Model, Value, learned_levels
from luciole.ir.analysis.weights import input_levels
from luciole.ir.number_format import LearnedLevels

BINS = 96
MARGIN = 0.4
"""How far a histogram reaches beyond the outermost levels, as a share of their distance."""


class _Counter:
    """Counts one layer's input, run by run."""

    def __init__(self, format: LearnedLevels) -> None:
        self.levels, self.thresholds = format.levels[0], format.thresholds
        self.first, self.last = reach(self.levels)
        span = float(self.levels[-1] - self.levels[0]) or 1.0
        self.low = float(self.levels[0]) - MARGIN * span
        self.high = float(self.levels[-1]) + MARGIN * span
        self.counts = np.zeros(BINS, np.int64)
        self.level_counts = np.zeros(len(self.levels), np.int64)
        self.below = self.above = self.clipped = 0

    def count(self, array: Array) -> None:
        x = array.reshape(-1).astype(np.float64)
        self.counts += np.histogram(x, BINS, (self.low, self.high))[0]
        self.below += int((x < self.low).sum())
        self.above += int((x > self.high).sum())
        self.clipped += int(((x < self.first) | (x > self.last)).sum())
        levels = learned_levels.encode(x, self.thresholds)
        self.level_counts += np.bincount(levels, minlength=len(self.levels))

    def result(self, source: str) -> InputHistogram:
        total = int(self.level_counts.sum())
        return InputHistogram(
            self.low,
            self.high,
            self.counts.tolist(),
            source,
            self.below,
            self.above,
            self.level_counts.tolist(),
            self.clipped / total if total else None,
        )


class _Watcher(Observer):
    """Passes a tensor's contents on to the counters of the layers that read it."""

    def __init__(self, counters: dict[Value, list[_Counter]]) -> None:
        self._counters = counters

    def after_tensor_write(self, value: Value, array: Array) -> None:
        """Count a tensor's contents."""
        for counter in self._counters.get(value, ()):
            counter.count(array)


def input_histograms(model: Model, records: Records, source: str) -> dict[str, InputHistogram]:
    """Count the inputs of all layers with learned levels over some records, by layer name.

    Raises what running the model raises.
    """
    counters: dict[str, _Counter] = {}
    readers: dict[Value, list[_Counter]] = {}
    for op in model.graph.ops:
        format, first = input_levels(op), op.operands[0] if op.operands else None
        if format is not None and first is not None:
            counters[op.name] = _Counter(format)
            readers.setdefault(first, []).append(counters[op.name])
    if not counters:
        return {}
    interpreter = Interpreter(model)
    size = batch_size(interpreter, records)  # found out before anybody counts
    interpreter.attach_observer(_Watcher(readers))
    for _ in run_records(interpreter, records, batch=size):
        pass
    return {name: counter.result(source) for name, counter in counters.items()}
