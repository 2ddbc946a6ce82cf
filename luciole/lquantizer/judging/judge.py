"""Judge networks by what the float network gives for the same records: what each one lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from luciole.interpreter import Interpreter
from luciole.interpreter.answers import (
    Reference,
    answers_of,
    is_probability,
    labels_for,
    no_class,
    scores_classes,
)
from luciole.interpreter.compare import paired_outputs, real_numbers, second_inputs
from luciole.interpreter.records import Records, batch_size, run_records
from luciole.ir import Array, Model, Value
from luciole.ir.names import called
from luciole.ir.quantization import affine_of
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.judging.metric import Answers, Metric
from luciole.lquantizer.judging.records import Judges
from luciole.lquantizer.proof import Measured, Verdict
from luciole.lquantizer.report import Report

_BY_METRIC = "(a metric of your own takes labels of any kind)"
_LEAST = 1e-7
"""The smallest probability that a logarithm is taken of."""
_DIGITS = 9
"""Of a drop, behind the point: 1 - 0.99 is more than 0.01 in binary."""


ANSWERS, RIGHT, VARIANCE = (
    "points of the answers changed",
    "points of right answers lost",
    "% of the variance lost",
)
"""Units of a drop: "0.5 points of the answers changed"."""


@dataclass(frozen=True)
class Distance:
    """How far a network is from the float one: the sum over its outputs of the mean
    Kullback-Leibler divergence sum p (ln p - ln q) from the float network's probabilities p, or
    where an output is none, of the squared error as a share of that output's variance; the noise
    over the signal of the first output, and the share of its answers that stay, None where it
    scores no classes.
    """

    loss: float
    noise: float
    agreement: float | None


@dataclass(frozen=True)
class Loss(Distance):
    """The drop as well, in the judge's unit, and the share of right answers, None unless labels
    judge.
    """

    drop: float
    right: float | None = None


class Judge:
    """The float network's outputs for some records, by which other networks are judged.

    A drop is of the user's ``metric``, by the ``labels`` or else the float network's outputs.
    Without a metric it is of right answers where there are labels, of the first output unless
    another one is ``labelled``; of answers that stay where the first output scores classes, and of
    the variance of all outputs where it scores none.
    """

    def __init__(
        self,
        model: Model,
        judges: Judges,
        metric: Metric | None = None,
        labelled: int = 0,
    ) -> None:
        self.judges, self.metric = judges, metric
        self._graph, self._labels, self._labelled = model.graph, judges.labels, labelled
        records = judges.records
        self.batch = _even(batch_size(Interpreter(model), records), records)
        outputs = self._outputs(model)
        self._places = [n for n, array in enumerate(outputs) if array.dtype.kind == "f"]
        if not self._places and metric is None:
            raise QuantizeError("the model has no output of real numbers to be judged by")
        self._values = [a for a, _ in paired_outputs(model.graph, model.graph)]
        self._references = [Reference.of(self._values[n], outputs[n]) for n in self._places]
        self._expected: Answers = self._answers(outputs) if judges.labels is None else judges.labels
        self._right = None if metric or judges.labels is None else self._right_answers(outputs)
        self.before = self.figure_of(outputs)
        """What the float network has of the metric, or its share of right answers."""

    @property
    def has_classes(self) -> bool:
        """Whether the first output scores classes."""
        return bool(self._references) and self._references[0].has_classes

    def share_lost(self, lost: Loss) -> float:
        """Return a loss of 0 and more: wrong answers where labels judge, what is lost of the float
        network's figure where a metric does, else the distance of outputs.
        """
        if self.metric is not None and self.before is not None:
            return max(lost.drop, 0.0) / (abs(self.before) or 1.0)
        return lost.loss if lost.right is None else 1 - lost.right

    def judge(self, model: Model) -> Loss:
        """Compare a network with the float one, and count its losses."""
        outputs = self._outputs(model)
        far = self._far(outputs)
        drop = round(_finite(self._drop(outputs, far.agreement)), _DIGITS)
        return Loss(far.loss, far.noise, far.agreement, drop, self._share_right(outputs))

    def distance(self, model: Model) -> Distance:
        """Compare a network with the float one; neither labels nor the metric are asked."""
        return self._far(self._outputs(model))

    def _far(self, outputs: Sequence[Array]) -> Distance:
        numbers = [outputs[n].astype(np.float64) for n in self._places]
        pairs = list(zip(self._references, numbers, strict=True))
        total = sum(_loss(reference.numbers, array) for reference, array in pairs)
        noise = _noise(*pairs[0]) if pairs else 0.0
        agreement = pairs[0][0].agreement(pairs[0][1]) if pairs else None
        return Distance(_finite(total), noise, agreement)

    def _is_broken(self, outputs: Sequence[Array]) -> bool:
        """Return whether an output is NaN or infinite where the float network's is not."""
        pairs = zip(self._references, (outputs[n] for n in self._places), strict=True)
        return any(bool((np.isfinite(r.numbers) & ~np.isfinite(a)).any()) for r, a in pairs)

    def _outputs(self, model: Model) -> list[Array]:
        """Compute outputs [records, ...], in the order of the float network's, integers with a
        scale as the real numbers that they stand for.
        """
        records = second_inputs(self._graph, model.graph, self.judges.records)
        parts = list(run_records(Interpreter(model), records, batch=self.batch))
        values = [other for _, other in paired_outputs(self._graph, model.graph)]
        return [_real(v, np.concatenate([part[v.name] for part in parts])) for v in values]

    def _answers(self, outputs: Sequence[Array]) -> Answers:
        """Give a metric its answers: those of the only output, or of several by name."""
        if len(outputs) == 1:
            return outputs[0]
        return dict(zip(map(called, self._values), outputs, strict=True))

    @property
    def unit(self) -> str:
        """The unit of a drop."""
        if self.metric is not None:
            return f"of {self.metric.name} lost"
        if self._right is not None:
            return RIGHT
        return ANSWERS if self.has_classes else VARIANCE

    def _drop(self, outputs: Sequence[Array], agreement: float | None) -> float:
        """Compute the drop, in the judge's unit."""
        if self.metric is not None and self._is_broken(outputs):
            return np.inf  # a metric need not bear such numbers
        figure = self.figure_of(outputs)
        if figure is not None and self.before is not None:
            return (self.before - figure) * (1 if self.metric else 100)
        return self._variance_lost(outputs) if agreement is None else 100 * (1 - agreement)

    def figure_of(self, outputs: Sequence[Array]) -> float | None:
        """Measure outputs by the metric or the share of right answers, None without either."""
        if self.metric is not None:
            return self.metric(self._answers(outputs), self._expected)
        return self._share_right(outputs)

    def _share_right(self, outputs: Sequence[Array]) -> float | None:
        """Count the share of answers that are the labels, None where none judge."""
        if self._right is None:
            return None
        return float(np.mean(answers_of(outputs[self._labelled]) == self._right))

    def measured(self, model: Model) -> Measured:
        """Measure the float network and another one by the metric."""
        assert self.metric is not None, "who asks for a figure has a metric"
        before, after = self.before, self.figure_of(self._outputs(model))
        assert before is not None, "as above"
        assert after is not None, "as above"
        return Measured(self.metric.name, before, after, self._labels is not None)

    def _right_answers(self, outputs: Sequence[Array]) -> Array:
        """Bring labels into the shape of answers. Raises QuantizeError for an output that scores
        no classes and labels that are none of them, InputError for labels of another shape.
        """
        labels, value = self._labels, self._values[self._labelled]
        numbers = outputs[self._labelled]
        assert labels is not None, "who asks for right answers has labels"
        if not scores_classes(value, numbers, labels):
            raise QuantizeError(
                f"labels need classes: output {called(value)!r} scores none {_BY_METRIC}"
            )
        right = labels_for(labels, answers_of(numbers).shape)
        sentence = no_class(right, value, numbers.shape[-1])
        if sentence is not None:
            raise QuantizeError(f"of those that judge, {sentence} {_BY_METRIC}")
        return right

    def _variance_lost(self, outputs: Sequence[Array]) -> float:
        """Add up the squared errors of outputs without classes, in percent of their variance."""
        pairs = zip(self._references, (outputs[n] for n in self._places), strict=True)
        errors = [_relative(r.numbers, array) for r, array in pairs if not r.has_classes]
        return 100 * sum(errors)


def enter_verdict(report: Report, judge: Judge, lost: Loss, target: float) -> None:
    """Enter into a report the loss of a network that was chosen for a target, with a warning where
    that is more.
    """
    agree = None if lost.agreement is None else 100 * lost.agreement
    count, origin = judge.judges.count, judge.judges.origin
    report.judged = Verdict(lost.drop, judge.unit, target, count, origin, agree)
    if lost.drop > target:
        report.warnings.append(f"more is lost than allowed: {report.judged}")


def _real(value: Value, array: Array) -> Array:
    """Decode integers that stand for real numbers, half as large as other modules do: metrics get
    whole segmentations.
    """
    return array if affine_of(value) is None else real_numbers(value, array).astype(np.float32)


def _finite(number: float) -> float:
    """Take no number for the largest."""
    return float(np.nan_to_num(number, nan=np.inf, posinf=np.inf))


def _even(most: int, records: Records) -> int:
    """Find a batch that the records can be parted into, so that no plan is made for a rest."""
    count = len(next(iter(records.values())))
    return next((n for n in range(most, most // 2, -1) if count % n == 0), most)


def _loss(floats: NDArray[np.float64], numbers: NDArray[np.float64]) -> float:
    if is_probability(floats):
        p, q = np.clip(floats, _LEAST, 1), np.clip(numbers, _LEAST, 1)
        return max(float(np.mean(np.sum(p * (np.log(p) - np.log(q)), -1))), 0.0)
    return _relative(floats, numbers)


def _noise(reference: Reference, numbers: NDArray[np.float64]) -> float:
    """Compute the squared error as a share of the signal."""
    signal = float(np.square(reference.numbers).mean()) or 1.0
    return float(np.square(numbers - reference.numbers).mean()) / signal


def _relative(floats: NDArray[np.float64], numbers: Array) -> float:
    """Compute the squared error as a share of the variance."""
    return float(np.square(numbers - floats).mean()) / (float(floats.var()) or 1.0)
