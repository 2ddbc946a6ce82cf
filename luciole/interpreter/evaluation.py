"""Run models over records and count right answers, and those that another model gives as well."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from luciole.interpreter import answers
from luciole.interpreter.answers import labels_for, no_class, scores_classes
from luciole.interpreter.compare import second_inputs
from luciole.interpreter.errors import InputError
from luciole.interpreter.interpreter import Interpreter
from luciole.interpreter.records import (
    Progress,
    Records,
    Track,
    batch_size,
    outputs_of,
    run_records,
    threads_for,
)
from luciole.ir import Array, Graph, Model, Value
from luciole.ir.errors import ChoiceError
from luciole.ir.names import called, names_of


@dataclass(frozen=True)
class OutputEvaluation:
    """One output: the class that it gives for each record [records, ...steps], the share of them
    that are the labels and the share that the other model gives as well, None without these.
    """

    output: str
    top1: float | None
    agreement: float | None
    answers: Array = field(repr=False)


@dataclass
class _Subject:
    """A model, the records that it answers, and the numbers of its outputs for the first ones."""

    interpreter: Interpreter
    records: Records
    batch: int
    numbers: dict[str, Array]

    @classmethod
    def begin(cls, model: Model, records: Records) -> _Subject:
        """Run a batch of each size, so that nothing is compiled later."""
        interpreter = Interpreter(model, num_threads=threads_for(model, records))
        size = batch_size(interpreter, records)
        first = {n: a[: size + len(a) % size] for n, a in records.items()}
        return cls(interpreter, records, size, outputs_of(interpreter, first, batch=size))

    def answers(self, outputs: Sequence[Value], progress: Progress) -> list[Array]:
        """Find the answers of each output."""
        return all_answers(self.interpreter, self.records, outputs, self.batch, progress)


def evaluate_outputs(
    model: Model,
    records: Records,
    labels: Array | None,
    other: Model | None,
    output: str | None,
    track: Track,
    ignored: int | None = None,
) -> tuple[list[OutputEvaluation], float]:
    """Count right answers of the outputs that score classes, or of one ``output``, and those that
    an ``other`` model gives as well; answers whose label is the ``ignored`` one count nowhere.
    Returns the seconds that the model took, too. Raises ChoiceError for an output that there is
    not, or that scores no classes, for labels of another shape or class, and another model that
    does not suit.
    """
    outputs = named_outputs(model.graph, output)
    subject = _Subject.begin(model, records)
    known = len(next(iter(subject.numbers.values())))
    judged = judged_outputs(outputs, subject.numbers, None if labels is None else labels[:known])
    if labels is not None:
        classes = {v: subject.numbers[v.name].shape[-1] for v in judged}
        widest = max(judged, key=classes.__getitem__)  # labels are of one of several outputs
        check_labels(widest, classes[widest], labels, ignored)
    count = len(next(iter(records.values())))
    progress, begun = track("records", count), time.perf_counter()
    arrays = subject.answers(judged, progress)
    seconds = time.perf_counter() - begun
    others: Sequence[Array | None] = [None] * len(judged)
    if other is not None:
        same = [other.graph.outputs[place] for place in _places(model, judged, other)]
        second = _Subject.begin(other, records_for_other(model, other, records))
        for value, its in zip(judged, same, strict=True):
            _check_classes(subject.numbers[value.name], value, second.numbers[its.name], its)
        others = second.answers(same, track("against", count))
    rows = zip(judged, arrays, others, strict=True)
    return [_counted(value, array, labels, its, ignored) for value, array, its in rows], seconds


def check_labels(output: Value, classes: int, labels: Array, ignored: int | None = None) -> None:
    """Refuse labels that are no class of an output, those ``ignored`` left out. Raises ChoiceError
    where all are, too.
    """
    if labels.dtype.kind == "b":
        raise ChoiceError("labels are numbers of classes, 0, 1, 2, ..., found bool")
    if labels.dtype.kind not in "iuf" or not labels.size:
        return
    counts = None if ignored is None else labels != ignored
    if counts is not None and not counts.any():
        raise ChoiceError(f"all labels are {ignored}, which is ignored: none is left to count")
    sentence = no_class(labels, output, classes, counts)
    if sentence is not None:
        raise ChoiceError(f"{sentence} (ignore_label, --ignore-label, names one that says none)")


def _counted(
    value: Value, array: Array, labels: Array | None, others: Array | None, ignored: int | None
) -> OutputEvaluation:
    counts = None if labels is None else _counting(labels, array, ignored)
    top1 = None if labels is None else share_right(array, labels, ignored)
    agreement = None if others is None else share_equal(array, others, counts)
    return OutputEvaluation(called(value), top1, agreement, array)


def _places(model: Model, judged: Sequence[Value], other: Model) -> list[int]:
    """Find which outputs of another model stand for those judged; ChoiceError without them."""
    places = [model.graph.outputs.index(v) for v in judged]
    count = len(other.graph.outputs)
    if max(places) >= count:
        raise ChoiceError(f"the other model has {count} outputs, number {max(places)} is judged")
    return places


def _check_classes(numbers: Array, output: Value, others: Array, other: Value) -> None:
    """Refuse to compare answers among different classes. Raises ChoiceError."""
    count, its = numbers.shape[-1], others.shape[-1] if others.ndim else 1
    if count != its:
        raise ChoiceError(
            f"output {called(output)!r} scores {count} classes, output {called(other)!r} of the "
            f"other model {its}"
        )


def records_for_other(model: Model, other: Model, records: Records) -> Records:
    """Turn a model's records into what another one takes: under its names, quantized or real."""
    count = len(other.graph.inputs)
    if count != len(records):
        raise ChoiceError(f"the other model has {count} inputs, the data {len(records)}")
    return second_inputs(model.graph, other.graph, records)


def named_outputs(graph: Graph, name: str | None) -> list[Value]:
    """Find the outputs of a name, a tensor's or a signature's; all of them without a name.

    Raises ChoiceError where there is none of that name.
    """
    outputs = [v for v in graph.outputs if name is None or name in names_of(v)]
    if not outputs:
        known = ", ".join(sorted(map(called, graph.outputs)))
        raise ChoiceError(f"there is no output {name!r}, only {known}")
    return outputs


def judged_outputs(
    outputs: Sequence[Value], numbers: Mapping[str, Array], labels: Array | None
) -> list[Value]:
    """Find the outputs that score classes, by the ``numbers`` of some records and their labels.

    Raises ChoiceError where none does.
    """
    judged = [v for v in outputs if scores_classes(v, numbers[v.name], labels)]
    if not judged:
        raise ChoiceError(
            f"output {called(outputs[0])!r} scores no classes: luciole diff says how far numbers "
            "are from another model's"
        )
    return judged


def answers_of(model: Model, records: Records, progress: Progress | None = None) -> Array:
    """Find the answers of the first output: [records, ...steps]."""
    outputs = model.graph.outputs[:1]
    return all_answers(Interpreter(model), records, outputs, progress=progress)[0]


def all_answers(
    interpreter: Interpreter,
    records: Records,
    outputs: Sequence[Value],
    batch: int | None = None,
    progress: Progress | None = None,
) -> list[Array]:
    """Find the answers of each output: [records, ...steps] each."""
    parts = [
        [answers.answers_of(out[v.name]) for v in outputs]
        for out in run_records(interpreter, records, progress, batch)
    ]
    return [np.concatenate(each) for each in zip(*parts, strict=True)]


def share_right(array: Array, labels: Array, ignored: int | None = None) -> float:
    """Compute the share of answers that are the labels, where these are not the ``ignored`` one.
    Raises ChoiceError where shapes differ.
    """
    return _share(array == _fitting(labels, array), _counting(labels, array, ignored))


def share_equal(array: Array, others: Array, counts: Array | None = None) -> float:
    """Compute the share of answers that another model gives as well, of all or of those that count.
    Raises ChoiceError where their shapes differ.
    """
    if array.shape != others.shape:
        shapes = f"{list(array.shape)}, the other model's {list(others.shape)}"
        raise ChoiceError(f"the answers have shape {shapes}")
    return _share(array == others, counts)


def _fitting(labels: Array, answers: Array) -> Array:
    """Bring labels into the shape of answers. Raises ChoiceError where they do not fit."""
    try:
        return labels_for(labels, answers.shape)
    except InputError as error:
        raise ChoiceError(str(error)) from None


def _counting(labels: Array, answers: Array, ignored: int | None) -> Array | None:
    """Mark the answers whose label is not the ignored one, None where none is."""
    return None if ignored is None else np.asarray(_fitting(labels, answers) != ignored)


def _share(equal: Array, counts: Array | None) -> float:
    return float((equal if counts is None else equal[counts]).mean())
