"""Addresses in the records of compiled kernels: of tensors, and of arrays of their own.

Kernels check nothing, so an address of a tensor is given only for so many bytes as the tensor has.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple

import numpy as np

from luciole.ir import Array
from luciole.ir.value import shape_text
from luciole.kernels.core.allocation import packed, placed
from luciole.kernels.core.contract import NativeStep, Stage
from luciole.kernels.core.errors import ExecutionError
from luciole.kernels.core.limits import room
from luciole.kernels.jit.record import Record, table


class Moves(NamedTuple):
    """The least and the most that a loop adds to an address, in bytes."""

    least: int
    most: int


NEVER = Moves(1, 0)
"""Moves of a loop that does not run."""


def turns(count: int, step: int) -> Moves:
    """Return the moves of a loop that goes on by ``step`` bytes from turn to turn."""
    last = (count - 1) * step
    return Moves(min(last, 0), max(last, 0)) if count > 0 else NEVER


def among(offsets: Array) -> Moves:
    """Return the moves of a loop over a table of offsets."""
    return Moves(int(offsets.min()), int(offsets.max())) if offsets.size else NEVER


def reach(array: Array, size: int, *loops: Moves, begin: int = 0) -> int:
    """Return the address of a tensor, or of a byte behind its beginning, for a kernel that touches
    ``size`` bytes from there on, and as many in every turn of nested loops.

    A view is touched from its lowest byte to its highest. Raises ExecutionError for bytes outside.
    """
    if size > 0 and NEVER not in loops:
        first = begin + sum(moves.least for moves in loops)
        end = begin + sum(moves.most for moves in loops) + size
        _check_inside(array, first, end)
    return int(array.ctypes.data) + begin


def _check_inside(array: Array, first: int, end: int) -> None:
    spans = [turns(n, step) for n, step in zip(array.shape, array.strides, strict=True)]
    low, high = 0, 0
    if NEVER not in spans:
        low = sum(span.least for span in spans)
        high = sum(span.most for span in spans) + array.itemsize
    if first < low or end > high:
        raise ExecutionError(
            f"a compiled kernel would touch bytes {first} to {end} of a tensor, "
            f"which has bytes {low} to {high}"
        )


@dataclass
class Memory:
    """Copies of arrays that a kernel touches besides tensors, kept alive together."""

    arrays: list[Array] = field(default_factory=list)

    def keep(self, array: Array, *shape: int) -> int:
        """Copy an array that a kernel walks as one of this shape, and return the address of the
        copy. A margin that the kernel touches, too, is part of the array.

        Raises ExecutionError where the array has another shape.
        """
        return self._kept(array, shape, placed)

    def keep_packed(
        self, source: Array, form: Hashable, pack: Callable[[], Array], *shape: int
    ) -> int:
        """Keep the array that ``pack`` makes of a constant, as ``keep`` does; once for all steps of
        a plan that need the constant in the same form.
        """
        return self._kept(packed(source, form, pack), shape, lambda array: array)

    def _kept(self, array: Array, shape: tuple[int, ...], place: Callable[[Array], Array]) -> int:
        if array.shape != shape:
            held, walked = shape_text(array.shape), shape_text(shape)
            raise ExecutionError(f"a compiled kernel would walk {walked} of an array {held}")
        self.arrays.append(place(array))
        return int(self.arrays[-1].ctypes.data)

    def record(self, record: Record) -> int:
        """Keep a record and return its address."""
        return self.table([record], type(record))

    def table(self, records: Sequence[Record], kind: type[Record]) -> int:
        """Keep records of a class, one behind the other, and return their address."""
        return self.keep(table(records, kind), len(records), len(kind.layout.names or ()))

    def scratch(self, *shape: int) -> int:
        """Take words that a kernel writes and reads again, 0 at first, and return their address.

        Raises ExecutionError when they take more than a kernel may.
        """
        room(4 * prod(shape), "what a compiled kernel writes for itself")
        return self.keep(np.zeros(shape, np.uint32), *shape)

    def room_for(self, kind: type[Record], count: int = 1) -> int:
        """Take records of a class that a kernel writes and reads again, 0 at first, and return
        their address.
        """
        return self.scratch(count, kind.layout.itemsize // 4)

    def step(
        self,
        address: int,
        record: Record | Array,
        split: Callable[[int], Sequence[Stage]] | None = None,
    ) -> NativeStep:
        """Make the step of a kernel on a record that points into tensors and into arrays kept
        here.
        """
        words = record.words() if isinstance(record, Record) else record
        return NativeStep(address, placed(words), tuple(self.arrays), split)
