"""DYNAMIC_UPDATE_SLICE kernels."""

from __future__ import annotations

from functools import cache
from math import prod

from luciole.ir import Array
from luciole.ir.dtypes import tensor_type
from luciole.ir.ops.dynamic_update_slice import DynamicUpdateSlice, check_box, clamped
from luciole.ir.rules import integers
from luciole.kernels import jit
from luciole.kernels.core.contract import Context, NativeStep
from luciole.kernels.core.memory import Memory, reach
from luciole.kernels.core.registry import ANY, native, reference
from luciole.kernels.elements.plain_integers import KINDS
from luciole.kernels.jit.record import Record
from luciole.kernels.jit.vector.conversions import integers_at
from luciole.kernels.jit.vector.moves import copy
from luciole.kernels.portable.calls import CCall, PortableContext, portable
from luciole.kernels.portable.moves import TYPES, update


@reference(DynamicUpdateSlice, *ANY)
def dynamic_update_slice(
    op: DynamicUpdateSlice, x: Array, update: Array, start_indices: Array
) -> Array:
    """Copy the operand with the box replaced."""
    check_box(update.shape, x.shape)
    begin = clamped(integers(start_indices, "start_indices", x.ndim), update.shape, x.shape)
    y = x.copy()
    y[tuple(slice(b, b + n) for b, n in zip(begin, update.shape, strict=True))] = update
    return y


class UpdateRecord(Record):
    """A list of ``size`` bytes and rows of it that are replaced, ``update`` bytes long: they begin
    at the first of the ``start`` indices, at most at row ``last``, each ``row`` bytes long.
    """

    y: int
    x: int
    size: int
    rows: int
    update: int
    start: int
    last: int
    row: int


@native(DynamicUpdateSlice, *ANY)
def build(op: DynamicUpdateSlice, context: Context) -> NativeStep | None:
    """Copy the list, and rows of it; None for boxes that are smaller along another axis."""
    (x, update, start), y = context.triple, context.results[0]
    check_box(update.shape, x.shape)
    if x.ndim == 0 or update.shape[1:] != x.shape[1:]:
        return None
    row = x.itemsize * prod(x.shape[1:])
    record = UpdateRecord(
        y=reach(y, x.nbytes),
        x=reach(x, x.nbytes),
        size=x.nbytes,
        rows=reach(update, update.nbytes),
        update=update.nbytes,
        start=reach(start, start.itemsize),
        last=len(x) - len(update),
        row=row,
    )
    return Memory().step(_updating(int(KINDS[tensor_type(start.dtype)])).address, record)


@cache
def _updating(kind: int) -> jit.Kernel:
    """Make the kernel for indices of a kind."""

    @jit.kernel
    def updated(r: UpdateRecord) -> None:
        copy(r.y, r.x, r.size)
        first = int(integers_at(r.start, kind)[0])
        place = 0 if first < 0 else r.last if first > r.last else first
        copy(r.y + place * r.row, r.rows, r.update)

    return updated


@portable(DynamicUpdateSlice, *TYPES)
def in_c(op: DynamicUpdateSlice, context: PortableContext) -> list[CCall]:
    """Copy the operand, and the box into it."""
    return [update(op.input, op.update, op.start_indices, op.results[0])]
