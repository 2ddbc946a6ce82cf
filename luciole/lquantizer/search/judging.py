"""Measure how far a network's answers are from the float network's, on records nothing was fitted
to.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from luciole.interpreter import Interpreter
from luciole.interpreter.answers import Reference, is_probability
from luciole.interpreter.records import Records, batch_size, run_records
from luciole.ir import Array, Model
from luciole.lquantizer.errors import QuantizeError

_LEAST = 1e-7
"""The smallest probability that a logarithm is taken of."""


@dataclass(frozen=True)
class Loss:
    """What a network lost: the sum over its outputs of the mean Kullback-Leibler divergence
    sum p (ln p - ln q) from the float network's probabilities p, or where an output is none, of the
    squared error as a share of that output's variance; and the share of answers of the first output
    that stay, None where it scores no classes.
    """

    loss: float
    agreement: float | None


class Judge:
    """The float network's outputs of real numbers, and the records they are for."""

    def __init__(self, model: Model, records: Records) -> None:
        self.records = records
        self.batch = _even(batch_size(Interpreter(model), records), records)
        outputs = zip(model.graph.outputs, self._outputs(model), strict=True)
        self.references = [Reference.of(*pair) for pair in outputs if pair[1].dtype.kind == "f"]
        if not self.references:
            raise QuantizeError("the model has no output of real numbers to be judged by")

    def _outputs(self, model: Model) -> list[Array]:
        parts = list(run_records(Interpreter(model), self.records, batch=self.batch))
        return [np.concatenate([part[v.name] for part in parts]) for v in model.graph.outputs]

    def judge(self, model: Model) -> Loss:
        """Compare a network with the float one."""
        outputs = [a.astype(np.float64) for a in self._outputs(model) if a.dtype.kind == "f"]
        pairs = zip(self.references, outputs, strict=True)
        total = sum(_loss(reference.numbers, numbers) for reference, numbers in pairs)
        agreement = self.references[0].agreement(outputs[0])
        return Loss(float(np.nan_to_num(total, nan=np.inf)), agreement)

    @property
    def has_classes(self) -> bool:
        """Whether the first output scores classes."""
        return self.references[0].has_classes


def _even(most: int, records: Records) -> int:
    """Find a batch that the records can be parted into, so that no plan is made for a rest."""
    count = len(next(iter(records.values())))
    return next((n for n in range(most, most // 2, -1) if count % n == 0), most)


def _loss(wanted: NDArray[np.float64], found: NDArray[np.float64]) -> float:
    if is_probability(wanted):
        p, q = np.clip(wanted, _LEAST, 1), np.clip(found, _LEAST, 1)
        return max(float(np.mean(np.sum(p * (np.log(p) - np.log(q)), -1))), 0.0)
    return float(np.square(found - wanted).mean()) / (float(wanted.var()) or 1.0)
