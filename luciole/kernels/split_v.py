"""SPLIT_V kernels."""

from __future__ import annotations

from itertools import accumulate, pairwise

from luciole.ir import Array
from luciole.ir.ops.split_v import SplitV, parts_of
from luciole.ir.rules import axis, integers, settled
from luciole.kernels.core.contract import Context, NativeStep
from luciole.kernels.core.registry import ANY, native, reference
from luciole.kernels.elements import copy
from luciole.kernels.portable.calls import CCall, PortableContext, portable
from luciole.kernels.portable.moves import TYPES as MOVED
from luciole.kernels.portable.moves import take


@reference(SplitV, *ANY)
def split_v(op: SplitV, x: Array, size_splits: Array, split_dim: Array) -> tuple[Array, ...]:
    """Copy each part."""
    return tuple(part.copy() for part in _parts(op, x, size_splits, split_dim))


def _parts(op: SplitV, x: Array, size_splits: Array, split_dim: Array) -> list[Array]:
    """Return views of the parts."""
    along = axis(integers(split_dim, "split_dim", 1)[0], x.ndim, "split_dim")
    sizes = integers(size_splits, "size_splits", op.num_splits)
    ends = accumulate((settled(s)[along] for s in parts_of(x.shape, along, sizes)), initial=0)
    before = (slice(None),) * along
    return [x[(*before, slice(begin, end))] for begin, end in pairwise(ends)]


@native(SplitV, *ANY)
def build(op: SplitV, context: Context) -> NativeStep | None:
    """Copy each part, where parts are known when the model is loaded."""
    x, size_splits, split_dim = context.operands
    fixed = op.size_splits.is_constant and op.split_dim.is_constant
    if x is None or size_splits is None or split_dim is None or not fixed:
        return None
    return copy.step(zip(context.results, _parts(op, x, size_splits, split_dim), strict=True))


@portable(SplitV, *MOVED)
def in_c(op: SplitV, context: PortableContext) -> list[CCall]:
    """Copy each part."""
    sizes, place = context.constant(op.size_splits), context.constant(op.split_dim)

    def part(number: int) -> CCall:
        return take(op.input, op.results[number], lambda x: _parts(op, x, sizes, place)[number])

    return [part(number) for number in range(len(op.results))]
