"""How much memory a kernel may take: for a result whose shape is known only when it runs, and for
what it computes on the way.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from luciole.ir import Op, TensorType
from luciole.ir.dtypes import NUMPY
from luciole.ir.rules import settled
from luciole.ir.value import Shape, element_count, impossible, shape_text
from luciole.kernels.registry import ExecutionError

MOST_BYTES = 4 << 30
"""A file can ask for any shape by computing it: what is known before is the plan's business."""

_WIDEST = 16
"""Bytes of the widest element."""

_LIMIT = ContextVar("bytes that a kernel may take", default=MOST_BYTES)


@contextmanager
def limited(most: int) -> Iterator[None]:
    """Let kernels that run inside take at most so many bytes for what was not planned."""
    before = _LIMIT.set(most)
    try:
        yield
    finally:
        _LIMIT.reset(before)


def room(size: int, what: str, where: str = "for one kernel") -> None:
    """Raise ExecutionError where something takes more bytes than a kernel may take."""
    most = _LIMIT.get()
    if size > most:
        raise ExecutionError(f"{what} would take {size} bytes, {most} are allowed {where}")


def affordable(op: Op, shape: Shape) -> tuple[int, ...]:
    """The shape of an operator's first result. Raises ExecutionError when it was not known before
    the operator ran and takes more bytes than a kernel may take.
    """
    extents, result = settled(shape), op.results[0]
    if None in result.shape:
        afford(result.dtype, extents)
    return extents


def afford(dtype: TensorType, extents: tuple[int, ...]) -> None:
    """Raise ExecutionError where a result whose shape was computed takes more bytes than a kernel
    may take.
    """
    item = NUMPY[dtype].itemsize if dtype in NUMPY else _WIDEST
    what = f"a result {shape_text(extents)} of {dtype.name}"
    room(element_count(extents) * item, what, "where the shape is computed")
    reason = impossible(extents)
    if reason is not None:
        raise ExecutionError(f"{what} has {reason}")
