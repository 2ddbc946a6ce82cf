"""Read how integers that operators compute grow with the open extents of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from luciole.ir.ops.broadcast import BroadcastArgs
from luciole.ir.ops.elementwise_binary import Add, Mul, Sub
from luciole.ir.ops.shape import Shape
from luciole.ir.rules import PartialInts
from luciole.ir.value import UNRANKED, Value
from luciole.schema.enums import ActivationFunctionType


@dataclass(frozen=True)
class Grown:
    """A number: ``factor`` times the open extent of a tensor's axis and ``offset``, which alone is
    a number that is known.
    """

    offset: int
    factor: int = 0
    tensor: Value | None = None
    axis: int = 0

    def plus(self, other: Grown, sign: int = 1) -> Grown | None:
        """Add a number, or with the sign -1 subtract it; None where two extents would be joined."""
        offset, factor = self.offset + sign * other.offset, self.factor + sign * other.factor
        if other.tensor is None or (other.tensor, other.axis) == (self.tensor, self.axis):
            return Grown(offset, factor, self.tensor, self.axis)
        return Grown(offset, factor, other.tensor, other.axis) if self.tensor is None else None

    def times(self, other: Grown) -> Grown | None:
        """Multiply by a number; None where two extents would be multiplied."""
        if self.tensor is None:
            times = self.offset
            return Grown(times * other.offset, times * other.factor, other.tensor, other.axis)
        return other.times(self) if other.tensor is None else None


Entries = tuple[Grown | None, ...]


def computed_extents(value: Value) -> Entries:
    """Find the entries of a vector of integers, None for those that extents do not say so; nothing
    where that is so of all.
    """
    entries: Any = _Entries()(value)
    return entries or ()


class _Entries(PartialInts):
    """The same walk, with ``Grown`` in the place of integers: rules only move these."""

    def _find(self, value: Value) -> Any:
        op = None if value.producer is None else value.producer.op
        if value.data is None and isinstance(op, Shape):
            shape = () if op.input.shape is UNRANKED else op.input.shape
            return tuple(
                Grown(0, 1, op.input, axis) if n is None else Grown(n)
                for axis, n in enumerate(shape)
            )
        if value.data is None and isinstance(op, Add | Sub | Mul):
            return self._joined(op)
        entries = None if isinstance(op, BroadcastArgs) else super()._find(value)
        if value.data is None or entries is None:
            return entries
        return tuple(None if n is None else Grown(n) for n in entries)

    def _joined(self, op: Add | Sub | Mul) -> Entries | None:
        a: Any = self(op.x)
        b: Any = self(op.y)
        if not a or not b or op.activation != ActivationFunctionType.NONE:
            return None
        count = max(len(a), len(b))
        pairs = zip(_stretched(a, count), _stretched(b, count), strict=False)
        joined = tuple(None if x is None or y is None else _join(op, x, y) for x, y in pairs)
        return joined if len(joined) == count else None


def _stretched(entries: Entries, count: int) -> Sequence[Grown | None]:
    return entries * count if len(entries) == 1 else entries


def _join(op: Add | Sub | Mul, x: Grown, y: Grown) -> Grown | None:
    if isinstance(op, Mul):
        return x.times(y)
    return x.plus(y, -1 if isinstance(op, Sub) else 1)
