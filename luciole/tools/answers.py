"""Read a model's answers: the class whose number is the largest, output by output."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from luciole.ir.names import called, names_of
from luciole.tools.common.command import UsageError

if TYPE_CHECKING:
    from luciole.interpreter import Interpreter
    from luciole.interpreter.records import Progress
    from luciole.ir import Array, Model, Value
    from luciole.tools.data import Data


def judged_outputs(model: Model, name: str | None = None) -> list[Value]:
    """Find the outputs whose largest entry is an answer: all that have more than one number for
    each record, or the one of a name (a tensor's or a signature's).

    Raises UsageError where there is none of that name, and where no output has a largest entry.
    """
    outputs = model.graph.outputs
    if name is not None:
        outputs = [v for v in outputs if name in names_of(v)]
        if not outputs:
            found = ", ".join(sorted(map(called, model.graph.outputs)))
            raise UsageError(f"there is no output {name!r}, only {found}")
    judged = [v for v in outputs if _width(v) != 1]
    if not judged:
        raise UsageError(
            f"output {called(outputs[0])!r} is one number for each record, of which none is the "
            "largest: luciole diff says how far numbers are from another model's"
        )
    return judged


def _width(output: Value) -> int | None:
    """Count the numbers of each record, None where the file leaves that open."""
    extents = output.shape[1:]
    return None if None in extents else prod(n for n in extents if n is not None)


def answers_of(model: Model, data: Data, progress: Progress | None = None) -> Array:
    """Find the answers of the first output, record by record: [records]."""
    from luciole.interpreter.records import first_output

    found: Array = first_output(model, data.records, progress).argmax(1)
    return found


def all_answers(
    interpreter: Interpreter,
    data: Data,
    outputs: Sequence[Value],
    batch: int | None = None,
    progress: Progress | None = None,
) -> list[Array]:
    """Find the index of the largest entry of each output, record by record: [records] each."""
    from luciole.interpreter.records import run_records

    parts = [
        [out[v.name].reshape(len(out[v.name]), -1).argmax(1) for v in outputs]
        for out in run_records(interpreter, data.records, progress, batch)
    ]
    return [np.concatenate(each) for each in zip(*parts, strict=True)]


def share_equal(answers: Array, wanted: Array, what: str) -> float:
    """Count the share of equal entries. Raises UsageError when their number differs."""
    if wanted.shape != answers.shape:
        raise UsageError(f"{len(answers)} answers, but the {what} have shape {list(wanted.shape)}")
    return float((answers == wanted).mean())
