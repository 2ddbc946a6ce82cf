"""Measure how far a network's answers are from the float network's, on records nothing was fitted
to.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from luciole.interpreter import Interpreter
from luciole.interpreter.records import Records, batch_size, run_records
from luciole.ir import Model
from luciole.lquantizer.errors import QuantizeError

_LEAST = 1e-7
"""The smallest probability that a logarithm is taken of."""
_UNIT = 1e-3
"""How far probabilities may be from a sum of 1."""

Answers = list[NDArray[np.float64]]
"""Of each output [records, ..., elements]."""


@dataclass(frozen=True)
class Loss:
    """What a network lost: the sum over its outputs of the mean Kullback-Leibler divergence
    sum p (ln p - ln q) from the float network's probabilities p, or where an output is none, of the
    squared error as a share of that output's variance; and the share of records whose first output
    is largest where the float one's is, None where it is one number.
    """

    loss: float
    agreement: float | None


class Judge:
    """The float network's answers, and the records they are for."""

    def __init__(self, model: Model, records: Records) -> None:
        self.records = records
        self.batch = _even(batch_size(Interpreter(model), records), records)
        self.wanted = self.answers(model)
        if not self.wanted:
            raise QuantizeError("the model has no output of real numbers to be judged by")

    def answers(self, model: Model) -> Answers:
        """Compute the outputs of real numbers, in the order of the model's."""
        names = [v.name for v in model.graph.outputs]
        parts = list(run_records(Interpreter(model), self.records, batch=self.batch))
        found = [np.concatenate([part[name] for part in parts]) for name in names]
        return [a.astype(np.float64) for a in found if a.dtype.kind == "f"]

    def judge(self, model: Model) -> Loss:
        """Compare a network with the float one."""
        found = self.answers(model)
        pairs = list(zip(self.wanted, found, strict=True))
        total = sum(_loss(wanted, answers) for wanted, answers in pairs)
        return Loss(float(np.nan_to_num(total, nan=np.inf)), _agreement(*pairs[0]))

    @property
    def has_classes(self) -> bool:
        """Whether the first output is a classifier's answer: probabilities, or a row of numbers."""
        first = self.wanted[0]
        return is_probability(first) or (first.ndim == 2 and first.shape[1] > 1)


def _even(most: int, records: Records) -> int:
    """Find a batch that the records can be parted into, so that no plan is made for a rest."""
    count = len(next(iter(records.values())))
    return next((n for n in range(most, most // 2, -1) if count % n == 0), most)


def is_probability(answers: NDArray[np.float64]) -> bool:
    """Tell whether the last axis holds probabilities."""
    if answers.ndim < 2 or answers.shape[-1] < 2 or answers.min() < -_UNIT:
        return False
    return bool(np.abs(answers.sum(-1) - 1).max() < _UNIT)


def _loss(wanted: NDArray[np.float64], found: NDArray[np.float64]) -> float:
    if is_probability(wanted):
        p, q = np.clip(wanted, _LEAST, 1), np.clip(found, _LEAST, 1)
        return max(float(np.mean(np.sum(p * (np.log(p) - np.log(q)), -1))), 0.0)
    return float(np.square(found - wanted).mean()) / (float(wanted.var()) or 1.0)


def _agreement(wanted: NDArray[np.float64], found: NDArray[np.float64]) -> float | None:
    one, other = (a.reshape(len(a), -1) for a in (wanted, found))
    if one.shape[1] < 2:
        return None
    return float(np.mean(one.argmax(1) == other.argmax(1)))
