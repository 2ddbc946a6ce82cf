"""Measure models on data from Python: right answers, and the distance of one from another."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from luciole.importers import as_model
from luciole.interpreter.compare import compare
from luciole.interpreter.comparison import Comparison
from luciole.interpreter.evaluation import (
    OutputEvaluation,
    evaluate_outputs,
    records_for_other,
)
from luciole.interpreter.finite import check_finite
from luciole.interpreter.records import Data, Records, Track, check_records, records_of, untracked
from luciole.ir import Array, Model
from luciole.ir.checked import checked
from luciole.ir.errors import ChoiceError
from luciole.lquantizer.judging.judge import Judge
from luciole.lquantizer.judging.metric import Metric, Source
from luciole.lquantizer.judging.records import Judges, labels_of

__all__ = ["Evaluation", "diff", "evaluate"]

Path_ = str | os.PathLike[str]


@dataclass
class Evaluation:
    """A model's figures over so many ``records``: those of each output that scores classes, and the
    seconds that it took. With a metric of the user's own no output is counted: ``metric`` is its
    figure, by labels or else by the other model's outputs, and ``metric_against`` the other
    model's by the same labels. So many labels were ``ignored``, and their answers count nowhere.
    """

    records: int
    outputs: list[OutputEvaluation] = field(default_factory=list)
    seconds: float = 0.0
    metric: float | None = None
    metric_against: float | None = None
    ignored: int = 0

    @property
    def top1(self) -> float | None:
        """The share of answers that are right, None without labels and of several outputs."""
        return self.outputs[0].top1 if len(self.outputs) == 1 else None

    @property
    def agreement(self) -> float | None:
        """The share of answers that the other model gives as well, None without one and of several
        outputs.
        """
        return self.outputs[0].agreement if len(self.outputs) == 1 else None

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"records    {self.records}"
        if self.ignored:
            yield f"ignored    {self.ignored} labels"
        for row in self.outputs:
            of = f" of {row.output}" if len(self.outputs) > 1 else ""
            if row.top1 is not None:
                yield f"top-1      {100 * row.top1:.2f} %{of}"
            if row.agreement is not None:
                yield f"agreement  {100 * row.agreement:.2f} %{of}"
        for figure in (self.metric, self.metric_against):
            if figure is not None:
                yield f"metric     {figure:.6g}"


@checked
def evaluate(
    model: Path_ | Model,
    data: Data,
    labels: ArrayLike | None = None,
    *,
    against: Path_ | Model | None = None,
    output: str | None = None,
    metric: Source | Metric | None = None,
    ignore_label: int | None = None,
    track: Track = untracked,
) -> Evaluation:
    """Run a model over records and count its right answers, as ``luciole eval`` does.

    ``data`` are records as ``luciole.run`` takes them, ``labels`` [records, ...] the right
    classes, ``against`` another model whose equal answers are counted. All outputs that score
    classes are judged, or the one called ``output``; answers whose label is ``ignore_label`` (255
    in maps of segmentation) count nowhere. A ``metric``, a function of answers and labels
    (of answers and the other model's where there are no labels) that returns a number, or
    ``"FILE.py:function"``, judges in their place. Raises InputError for data that the model does
    not take and for NaN or infinity, ChoiceError for what does not go together.

        luciole.evaluate("small.circle", images, labels, against="model.circle").top1
    """
    subject = as_model(model)
    other = None if against is None else as_model(against)
    records = records_of(subject.graph, data)
    count = check_records(subject.graph, records)
    check_finite(subject.graph, records)
    right = labels_of(labels)
    if metric is not None:
        if output is not None or ignore_label is not None:
            name = "ignore_label" if output is None else "output"
            raise ChoiceError(f"a metric judges all outputs and labels: leave {name} out")
        return _by_metric(subject, records, right, other, Metric.of(metric))
    if right is None and ignore_label is not None:
        raise ChoiceError("ignore_label goes with labels: without them leave it out")
    rows, seconds = evaluate_outputs(subject, records, right, other, output, track, ignore_label)
    ignored = 0 if ignore_label is None else int(np.sum(right == ignore_label))
    return Evaluation(count, rows, seconds, ignored=ignored)


def _by_metric(
    model: Model,
    records: Records,
    labels: Array | None,
    other: Model | None,
    metric: Metric,
) -> Evaluation:
    """Measure a model, and another one beside it, by a metric of the user's own."""
    begun = time.perf_counter()
    judges = Judges(records, "", labels)
    figure = against = None
    if labels is not None:
        judge = Judge(model, judges, metric)
        figure = judge.before
        against = None if other is None else judge.measured(other).file
    elif other is not None:
        its = records_for_other(model, other, records)
        figure = Judge(other, Judges(its), metric).measured(model).file
    else:
        raise ChoiceError("a metric needs labels, or another model whose outputs are right")
    seconds = time.perf_counter() - begun
    return Evaluation(judges.count, [], seconds, figure, against)


@checked
def diff(
    first: Path_ | Model, second: Path_ | Model, data: Data, *, track: Track = untracked
) -> Comparison:
    """Compare two models layer by layer on the same records, as ``luciole diff`` does: how far each
    tensor of the second one is from the first one's, and how often their answers are the same.
    ``print`` shows the layers, the worst first.

    ``data`` are records for the first model, as ``luciole.run`` takes them. Raises InputError where
    the models' inputs or outputs do not answer to each other, and for data that does not fit or
    is not finite.
    """
    one, two = as_model(first), as_model(second)
    records = records_of(one.graph, data)
    count = check_records(one.graph, records)
    check_finite(one.graph, records)
    return compare(one, two, records, track("records", count))
