"""SLICE kernels."""

from __future__ import annotations

from luciole.ir import Array
from luciole.ir.ops.slice import Slice, box
from luciole.ir.rules import integers, settled
from luciole.kernels.registry import ANY, reference


@reference(Slice, *ANY)
def slice_(op: Slice, x: Array, begin: Array, size: Array) -> Array:
    """A copy of the box."""
    first = integers(begin, "begin", x.ndim)
    extents = settled(box(x.shape, first, integers(size, "size", x.ndim)))
    return x[tuple(slice(b, b + n) for b, n in zip(first, extents, strict=True))].copy()
