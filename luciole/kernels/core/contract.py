"""Declare the agreement between kernels, their builders and those who run them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

from luciole.ir import Array, TensorType
from luciole.ir.calls import Call
from luciole.kernels.core.errors import ExecutionError
from luciole.kernels.core.reasons import Declined

Reference = Callable[..., Any]
"""``kernel(op, *operands) -> result``, or a tuple of results. Absent operands are None, a variadic
operand is a tuple. A kernel reads its operands and returns fresh arrays; only variable tensors are
written in place.
"""

Calls = Generator[Call, tuple[Array, ...], tuple[Array, ...]]
"""A kernel that has graphs run for it: it yields each call, is sent what the graph returned, and
returns its results.
"""

Stateful = Callable[..., Any]
"""``kernel(op, state, *operands)`` of an operator that is more than its operands: as a reference
kernel, but given what outlives a run (``State`` of ``luciole.kernels.core.state``), and it may be
``Calls``.
"""

Signature = tuple[TensorType, ...]


Stage = Sequence[Array]
"""Records that threads run at the same time."""


@dataclass(frozen=True)
class NativeStep:
    """A compiled kernel and the record of numbers it runs on.

    ``address`` is that of a ``void(int64*)`` function. ``record`` is its argument: addresses, sizes
    and parameters as int64; ``owns`` are the arrays behind those addresses, kept alive with the
    step. ``split`` gives, for a number of threads, stages that follow each other, each of records
    that do its work together (at most one for a thread); no stage where threads do not pay. Without
    it one thread does a step alone. ``check`` is called behind a step that may fail, and raises
    LucioleError where it did; with ``remembers`` also where the step failed in any call since
    ``check`` was called last. ``is_paused`` tells behind one that may return on the way whether it
    is to be called again, and raises as ``check``.
    """

    address: int
    record: Array
    owns: tuple[Array, ...] = ()
    split: Callable[[int], Sequence[Stage]] | None = None
    check: Callable[[], None] | None = None
    remembers: bool = False
    is_paused: Callable[[], bool] | None = None

    @property
    def stands_alone(self) -> bool:
        """Whether nothing may follow in the same call."""
        return self.check is not None or self.is_paused is not None


@dataclass(frozen=True)
class Context:
    """Arguments of a native kernel's builder: the arrays that hold each operand and result for
    good.
    """

    operands: tuple[Array | None, ...]
    results: tuple[Array, ...]

    @property
    def first(self) -> Array:
        """The array of the first operand, which is there."""
        return self._required(0)

    @property
    def pair(self) -> tuple[Array, Array]:
        """The arrays of the first two operands, which are there."""
        return self._required(0), self._required(1)

    @property
    def triple(self) -> tuple[Array, Array, Array]:
        """The arrays of the first three operands, which are there."""
        return *self.pair, self._required(2)

    def _required(self, slot: int) -> Array:
        array = self.operands[slot]
        if array is None:
            raise ExecutionError(f"operand {slot} is there without an array")
        return array


Built = NativeStep | Declined | None
"""A step, or the reason for which the reference runs instead; None where that shows, see
``reasons.apparent``.
"""

Build = Callable[[Any, Context], Built]
"""``build(op, context)``: configure once per model.

It is called by ``build_native`` alone, so that extents were checked.
"""

StatefulBuild = Callable[[Any, Any, Context], Built]
"""``build(op, state, context)`` after a run: what the state holds may be relied on until a variable
moves. Where there is no step, the ``Stateful`` kernel goes on.
"""
