"""Choose the outputs of a model that answer, and count how often they are right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from luciole.ir.names import called, names_of
from luciole.tools.common.command import UsageError

if TYPE_CHECKING:
    from luciole.interpreter import Interpreter
    from luciole.interpreter.records import Progress
    from luciole.ir import Array, Graph, Model, Value
    from luciole.tools.data.load import Data


def named_outputs(graph: Graph, name: str | None) -> list[Value]:
    """Find the outputs of a name, a tensor's or a signature's; all of them without a name.

    Raises UsageError where there is none of that name.
    """
    outputs = [v for v in graph.outputs if name is None or name in names_of(v)]
    if not outputs:
        known = ", ".join(sorted(map(called, graph.outputs)))
        raise UsageError(f"there is no output {name!r}, only {known}")
    return outputs


def judged_outputs(
    outputs: Sequence[Value], numbers: Mapping[str, Array], labels: Array | None
) -> list[Value]:
    """Find the outputs that score classes, by the ``numbers`` of some records and their labels.

    Raises UsageError where none does.
    """
    from luciole.interpreter.answers import scores_classes

    judged = [v for v in outputs if scores_classes(v, numbers[v.name], labels)]
    if not judged:
        raise UsageError(
            f"output {called(outputs[0])!r} scores no classes: luciole diff says how far numbers "
            "are from another model's"
        )
    return judged


def answers_of(model: Model, data: Data, progress: Progress | None = None) -> Array:
    """Find the answers of the first output: [records, ...steps]."""
    from luciole.interpreter import Interpreter

    outputs = model.graph.outputs[:1]
    return all_answers(Interpreter(model), data, outputs, progress=progress)[0]


def all_answers(
    interpreter: Interpreter,
    data: Data,
    outputs: Sequence[Value],
    batch: int | None = None,
    progress: Progress | None = None,
) -> list[Array]:
    """Find the answers of each output: [records, ...steps] each."""
    from luciole.interpreter import answers
    from luciole.interpreter.records import run_records

    parts = [
        [answers.answers_of(out[v.name]) for v in outputs]
        for out in run_records(interpreter, data.records, progress, batch)
    ]
    return [np.concatenate(each) for each in zip(*parts, strict=True)]


def share_right(answers: Array, labels: Array) -> float:
    """Count the share of answers that are the labels. Raises UsageError where shapes differ."""
    from luciole.interpreter.answers import labels_for
    from luciole.interpreter.errors import InputError

    try:
        return float((answers == labels_for(labels, answers.shape)).mean())
    except InputError as error:
        raise UsageError(str(error)) from None


def share_equal(answers: Array, others: Array) -> float:
    """Count the share of answers that another model gives as well. Raises UsageError where their
    shapes differ.
    """
    if answers.shape != others.shape:
        shapes = f"{list(answers.shape)}, the other model's {list(others.shape)}"
        raise UsageError(f"the answers have shape {shapes}")
    return float((answers == others).mean())
