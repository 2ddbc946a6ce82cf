"""STRIDED_SLICE kernels."""

from __future__ import annotations

from collections.abc import Iterator

from luciole.ir import Array
from luciole.ir.ops.strided_slice import StridedSlice, element, entries, has_bit, span
from luciole.ir.rules import integers
from luciole.kernels.core.contract import Context, NativeStep
from luciole.kernels.core.registry import ANY, ANYTHING, native, reference
from luciole.kernels.elements import copy
from luciole.kernels.portable.calls import CCall, PortableContext, portable
from luciole.kernels.portable.moves import TYPES as MOVED
from luciole.kernels.portable.moves import take


@reference(StridedSlice, *ANYTHING)
def strided_slice(op: StridedSlice, x: Array, begin: Array, end: Array, strides: Array) -> Array:
    """Copy the elements that NumPy's basic indexing takes."""
    return _taken(op, x, begin, end, strides).copy()


def _taken(op: StridedSlice, x: Array, begin: Array, end: Array, strides: Array) -> Array:
    """View the elements that NumPy's basic indexing takes."""
    first = integers(begin, "begin")
    last = integers(end, "end", len(first))
    steps = integers(strides, "strides", len(first))
    return x[(*_keys(op, x.shape, first, last, steps), ...)]


def _keys(
    op: StridedSlice, shape: tuple[int, ...], *vectors: tuple[int, ...]
) -> Iterator[int | slice | None]:
    """Return NumPy's key for each entry, with nothing left for NumPy to clamp or count from the
    end.
    """
    for axis, place in entries(op, len(vectors[0]), len(shape)):
        if axis is None:
            yield None
        elif place is None:
            yield slice(None)
        else:
            begin, end, stride = (vector[place] for vector in vectors)
            if has_bit(op.shrink_axis_mask, place):
                yield element(op, place, shape[axis], begin, stride)
            else:
                yield _as_slice(span(op, place, shape[axis], begin, end, stride))


def _as_slice(taken: range) -> slice:
    """Return a range inside of an axis as a key; a stop of -1 would mean the last element."""
    if not len(taken):
        return slice(0, 0)
    return slice(taken.start, taken.stop if taken.stop >= 0 else None, taken.step)


@native(StridedSlice, *ANY)
def build(op: StridedSlice, context: Context) -> NativeStep | None:
    """Copy the elements taken, where these are known when the model is loaded."""
    x, begin, end, strides = context.operands
    fixed = op.begin.is_constant and op.end.is_constant and op.strides.is_constant
    if x is None or begin is None or end is None or strides is None or not fixed:
        return None
    return copy.step([(context.results[0], _taken(op, x, begin, end, strides))])


@portable(StridedSlice, *MOVED)
def in_c(op: StridedSlice, context: PortableContext) -> list[CCall]:
    """Copy the elements of the slice."""
    keys = [context.constant(value) for value in (op.begin, op.end, op.strides)]
    return [take(op.input, op.results[0], lambda x: _taken(op, x, *keys))]
