"""Hold the texts of string tensors: in arrays of objects beside the arena, within the limit."""

from __future__ import annotations

from collections.abc import Iterable

from luciole.ir import Array, LucioleError, TensorType, Value
from luciole.ir.strings import blank, is_texts, memory_of, most_memory
from luciole.ir.value import element_count
from luciole.kernels.core.meter import Meter


class Texts:
    """Counts the memory of the texts in string tensors of a plan, as long as these hold them, and
    refuses contents that are no texts.

    A text counts as often as tensors hold it, though they share it.
    """

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._held: dict[Value, int] = {}

    def __del__(self) -> None:
        self._meter.hold(-sum(self._held.values()))

    def taken_from(self, values: Iterable[Value]) -> dict[Value, Array]:
        """Make the arrays of string tensors that are constants, and of inputs: empty texts at
        first.

        Raises GraphError for damaged constants, MemoryLimitError where they take too much.
        """
        arrays: dict[Value, Array] = {}
        for value in values:
            if value.dtype == TensorType.STRING:
                array = self._beginning(value)
                if array is not None:
                    self.admit(value, array)
                    arrays[value] = array
        return arrays

    def _beginning(self, value: Value) -> Array | None:
        if value.is_constant and value.buffer is not None:
            self._meter.check(most_memory(element_count(value.dims), len(value.buffer)))
        elif value.is_input:
            self._meter.check(most_memory(element_count(value.dims), 0))
            return blank(value.dims)
        return value.texts

    def admit(self, value: Value, array: Array) -> None:
        """Count a tensor's new contents instead of its old ones.

        Raises LucioleError for anything but texts, MemoryLimitError where they take too much.
        """
        if not is_texts(array):
            raise LucioleError(f"tensor {value.name!r} is to hold bytes, given were other objects")
        size = memory_of(array)
        self._meter.hold(size - self._held.get(value, 0))
        self._held[value] = size

    def forget(self, value: Value) -> None:
        """Count a tensor no longer."""
        self._meter.hold(-self._held.pop(value, 0))
