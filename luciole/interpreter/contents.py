"""Hold the contents of tensors while a model runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from luciole.interpreter.memory import take
from luciole.interpreter.settle import Settled
from luciole.interpreter.texts import Texts
from luciole.ir import Array, Op, TensorType, UnsupportedError, Value
from luciole.ir.analysis.layout import Layout
from luciole.ir.dtypes import NUMPY
from luciole.kernels.core.meter import Meter


class Contents:
    """The arrays of tensors: of ``placed`` ones for good, where compiled kernels may be pointed to;
    of ``late`` ones, which are texts or whose shapes are known only when their operator ran, as the
    last run computed them; and the ``texts`` of inputs and constants.
    """

    def __init__(
        self,
        placed: Mapping[Value, Array],
        ops: Sequence[Op],
        texts: Texts,
        beside: Mapping[Value, Array],
    ) -> None:
        self.arrays = {**placed, **beside}
        self.placed, self._kept = frozenset(placed), frozenset(self.arrays)
        self.late = {v for op in ops for v in op.results} - self.placed
        self._texts = texts

    def write(self, value: Value, array: Array) -> None:
        """Copy an array into a tensor's place, or keep it where the tensor has none.

        Raises MemoryLimitError for texts that take too much, LucioleError for other objects.
        """
        if value.dtype == TensorType.STRING:
            self._texts.admit(value, array)
        if value in self._kept:
            self.arrays[value][...] = array
        else:
            self.arrays[value] = array

    def forget(self, values: Iterable[Value] | None = None) -> None:
        """Leave out late contents that the last run has computed, of all tensors or of some: there
        may be no room for it twice. What is placed stays where kernels are pointed to.
        """
        for value in self.late if values is None else self.late.intersection(values):
            self.arrays.pop(value, None)
            self._texts.forget(value)


def hold(
    settled: Settled, layout: Layout, meter: Meter, present: Mapping[Value, Array] | None = None
) -> Contents:
    """Take memory for a layout, and hold constants and texts beside it; tensors that are
    ``present`` have places already.

    Raises UnsupportedError for an operand that has no array form, or no contents, and that nothing
    computes, and what ``Texts.taken_from`` raises.
    """
    placed = {**settled.constants, **take(layout, present)}
    texts = Texts(meter)
    contents = Contents(placed, settled.ops, texts, texts.taken_from(settled.graph.values))
    for op in settled.ops:
        for value in op.operands:
            if value is not None and value.producer is None and value not in contents.arrays:
                lacks = "has no contents and nothing computes it"
                why = lacks if value.dtype in NUMPY else f"is {value.dtype.name}"
                raise UnsupportedError(f"cannot run {op}: operand {value.name!r} {why}")
    return contents
