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
        """Say it in a line."""
        how = "same answers as the interpreter" if self.holds else "WRONG"
        numbers = f"{self.same} of {self.records} equal"
        return f"{how}: {numbers}, largest difference {self.largest_difference:.1e}"


def compare(
    program: Program,
    compiled: Compiled,
    model: Model,
    given: Mapping[str, Array],
    real: Mapping[str, Array],
) -> Agreement:
    """Compare on records ``[n, ...]``: ``given`` are what the C program takes, ``real`` what the
    interpreter does.

    Integers must be equal, of scores the largest must be the same one, single numbers close. Raises
    LucioleError for no records.
    """
    interpreter, originals = Interpreter(model), [end.original for end in program.outputs]
    same, worst, count = 0, 0.0, 0
    for ours, theirs in zip(batches(program, given), batches(program, real), strict=True):
        found, wanted = compiled.run(ours), interpreter.computed(theirs, originals)
        pairs = list(zip(program.outputs, found, wanted, strict=True))
        same += all(_agrees(end, a, b) for end, a, b in pairs)
        worst = max([worst, *(_difference(end, a, b) for end, a, b in pairs)])
        count += 1
    if not count:
        raise LucioleError("there are no records to check with")
    return Agreement(count, same, worst)


def batches(program: Program, records: Mapping[str, Array]) -> Iterator[dict[str, Array]]:
    """Cut records into what one run takes; one run where it takes nothing."""
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


def _agrees(end: End, found: Array, wanted: Array) -> bool:
    if end.form == CLASS:
        return bool(np.array_equal(found.reshape(-1), answers_of(wanted).reshape(-1)))
    if end.places is None and wanted.dtype.kind in "iub":
        return bool(np.array_equal(found, wanted))
    if wanted.ndim and wanted.shape[-1] > 1:
        return agreement(found, wanted) == 1
    return _difference(end, found, wanted) <= CLOSE * max(1.0, float(np.abs(wanted).max()))


def _difference(end: End, found: Array, wanted: Array) -> float:
    """Find the largest difference of numbers; of integers none is told."""
    if end.form == CLASS or (end.places is None and wanted.dtype.kind in "iub"):
        return 0.0
    real = found.astype(np.float64) * 2.0 ** -(end.places or 0)
    return float(np.abs(real - wanted).max(initial=0))
