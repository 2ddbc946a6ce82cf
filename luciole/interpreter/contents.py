"""Hold what tensors contain while a model runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from luciole.interpreter.memory import take
from luciole.interpreter.settle import Settled
from luciole.ir import Array, Op, UnsupportedError, Value
from luciole.ir.analysis.layout import Layout
from luciole.ir.dtypes import NUMPY


class Contents:
    """The arrays of tensors: of ``placed`` ones for good, of ``late`` ones, whose shapes are known
    only when their operator ran, as the last run computed them.
    """

    def __init__(self, placed: Mapping[Value, Array], ops: Sequence[Op]) -> None:
        self.arrays = dict(placed)
        self.placed = frozenset(placed)
        self.late = {v for op in ops for v in op.results} - self.placed

    def write(self, value: Value, array: Array) -> None:
        """Copy an array into a tensor's place, or keep it where the tensor has none."""
        if value in self.placed:
            self.arrays[value][...] = array
        else:
            self.arrays[value] = array

    def forget(self) -> None:
        """Leave out what the last run has computed: there may be no room for it twice."""
        for value in self.late:
            self.arrays.pop(value, None)


def hold(settled: Settled, layout: Layout) -> Contents:
    """Take memory for a layout, and hold constants beside it.

    Raises UnsupportedError for an operand that has no array form, or no contents, and that nothing
    computes.
    """
    placed = {**settled.constants, **take(layout)}
    for op in settled.ops:
        for value in op.operands:
            if value is not None and value.producer is None and value not in placed:
                lacks = "has no contents and nothing computes it"
                why = lacks if value.dtype in NUMPY else f"is {value.dtype.name}"
                raise UnsupportedError(f"cannot run {op}: operand {value.name!r} {why}")
    return Contents(placed, settled.ops)
