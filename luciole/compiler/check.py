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
    """Records that were run, how many had the same answers, and the largest difference of numbers
    that are no integers.
    """

    records: int
    same: int
    largest_difference: float

    @property
    def holds(self) -> bool:
        """Whether every answer was the interpreter's."""
        return self.same == self.records

    def text(self) -> str:
        """Return the agreement as a line of text."""
        verdict = "same answers as the interpreter" if self.holds else "WRONG"
        numbers = f"{self.same} of {self.records} equal"
        return f"{verdict}: {numbers}, largest difference {self.largest_difference:.1e}"


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
    same, worst, count = 0, 0.0, 0
    for ours, theirs in zip(batches(program, inputs), batches(program, real), strict=True):
        results, expected = compiled.run(ours), interpreter.computed(theirs, originals)
        pairs = list(zip(program.outputs, results, expected, strict=True))
        same += all(_agrees(end, a, b) for end, a, b in pairs)
        worst = max([worst, *(_difference(end, a, b) for end, a, b in pairs)])
        count += 1
    if not count:
        raise LucioleError("there are no records to check with")
    return Agreement(count, same, worst)


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
    if end.places is None and expected.dtype.kind in "iub":
        return bool(np.array_equal(result, expected))
    if expected.ndim and expected.shape[-1] > 1:
        return agreement(result, expected) == 1
    return _difference(end, result, expected) <= CLOSE * max(1.0, float(np.abs(expected).max()))


def _difference(end: End, result: Array, expected: Array) -> float:
    """Find the largest difference of numbers; integers have none here."""
    if end.form == CLASS or (end.places is None and expected.dtype.kind in "iub"):
        return 0.0
    real = result.astype(np.float64) * 2.0 ** -(end.places or 0)
    return float(np.abs(real - expected).max(initial=0))
