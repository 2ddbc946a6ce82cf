"""Run a compiled network and the interpreter on the same records, and compare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from luciole.compiler.compiled import Compiled
from luciole.compiler.ends import End
from luciole.compiler.options import CLASS
from luciole.compiler.program import Program
from luciole.interpreter import Interpreter
from luciole.interpreter.answers import agreement, answers_of
from luciole.ir import Array, LucioleError, Model, Value

CLOSE = 1e-4
"""How far single numbers that are no integers may be from the interpreter's, of the largest."""


@dataclass(frozen=True)
class Agreement:
    """Records that were run, how many had the same answers, the largest difference of numbers that
    are no integers, and how the first record differs that does.
    """

    records: int
    same: int
    largest_difference: float
    first: str | None = None

    @property
    def holds(self) -> bool:
        """Whether every answer was the interpreter's."""
        return self.same == self.records

    def text(self) -> str:
        """Return the agreement as a line of text."""
        verdict = "same answers as the interpreter" if self.holds else "WRONG"
        numbers = f"{self.same} of {self.records} equal"
        where = "" if self.first is None else f"; {self.first}"
        return f"{verdict}: {numbers}, largest difference {self.largest_difference:.1e}{where}"


def compare(
    program: Program,
    compiled: Compiled,
    model: Model,
    inputs: Mapping[str, Array],
    real: Mapping[str, Array],
) -> Agreement:
    """Compare on records ``[n, ...]``: ``inputs`` are those of the C program, ``real`` those of
    the interpreter.

    Integers must be equal, of scores the largest must be the same one, single numbers close. Raises
    LucioleError for no records.
    """
    interpreter, originals = Interpreter(model), [end.original for end in program.outputs]
    same, worst, count, first = 0, 0.0, 0, None
    for ours, theirs in zip(batches(program, inputs), batches(program, real), strict=True):
        results, expected = compiled.run(ours), interpreter.computed(theirs, originals)
        pairs = list(zip(program.outputs, results, expected, strict=True))
        wrong = [pair for pair in pairs if not _agrees(*pair)]
        same += not wrong
        if wrong and first is None:
            first = f"record {count}: {_contrast(*wrong[0])}"
        worst = max([worst, *(_difference(end, a, b) for end, a, b in pairs)])
        count += 1
    if not count:
        raise LucioleError("there are no records to check with")
    return Agreement(count, same, worst, first)


def batches(program: Program, records: Mapping[str, Array]) -> Iterator[dict[str, Array]]:
    """Cut records into batches of one run; one run where it takes nothing."""
    sizes = {end.original.name: _batch(end.value) for end in program.inputs}
    count = min((len(records[name]) // size for name, size in sizes.items()), default=1)
    shapes = {end.original.name: end.value.dims for end in program.inputs}
    for k in range(count):
        yield {
            name: records[name][k * size : (k + 1) * size].reshape(shapes[name])
            for name, size in sizes.items()
        }


def _batch(value: Value) -> int:
    """Count how many records an input takes at once."""
    return value.dims[0] if value.dims else 1


def _agrees(end: End, result: Array, expected: Array) -> bool:
    if end.form == CLASS:
        return bool(np.array_equal(result.reshape(-1), answers_of(expected).reshape(-1)))
    if _is_whole(end, expected):
        return bool(np.array_equal(result, expected))
    if expected.ndim and expected.shape[-1] > 1:
        return agreement(result, expected) == 1
    return _difference(end, result, expected) <= CLOSE * max(1.0, float(np.abs(expected).max()))


def _contrast(end: End, result: Array, expected: Array) -> str:
    """Describe a wrong result: the first class that is another one, and by how much it loses among
    the interpreter's scores; how many integers differ; or the difference of single numbers.
    """
    is_class = end.form == CLASS
    if not is_class and _is_whole(end, expected):
        return f"{int((result != expected).sum())} of {expected.size} numbers differ"
    if not is_class and not (expected.ndim and expected.shape[-1] > 1):
        return f"off by {_difference(end, result, expected):.1e}"
    ours = (result if is_class else answers_of(result)).reshape(-1)
    scores = expected.reshape(-1, expected.shape[-1]).astype(np.float64)
    theirs = answers_of(scores).reshape(-1)
    row = int(np.flatnonzero(ours != theirs)[0])
    margin = scores[row, theirs[row]] - scores[row, ours[row]]
    return f"class {ours[row]}, the interpreter's {theirs[row]} scores {margin:.1e} more"


def _is_whole(end: End, expected: Array) -> bool:
    """Return whether results are integers that are equal where they are right."""
    return end.places is None and expected.dtype.kind in "iub"


def _difference(end: End, result: Array, expected: Array) -> float:
    """Find the largest difference of numbers; integers have none here."""
    if end.form == CLASS or _is_whole(end, expected):
        return 0.0
    real = result.astype(np.float64) * 2.0 ** -(end.places or 0)
    return float(np.abs(real - expected).max(initial=0))
