"""Limits of the memory that a kernel may take: for a result whose shape is known only when it runs,
and for intermediate arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from luciole.ir import Op, TensorType
from luciole.ir.dtypes import NUMPY
from luciole.ir.rules import settled
from luciole.ir.value import Shape, element_count, impossible, shape_text
from luciole.kernels.core.errors import ExecutionError, MemoryLimitError
from luciole.kernels.core.meter import present

MOST_BYTES = 4 << 30
"""A file can ask for any shape by computing it: what is known before is the plan's business."""

SORT_BYTES = 4
"""Memory of a stable sort of places beside arrays, for each element of the axis: NumPy merges half
of 8 bytes at a time.
"""

_WIDEST = 16
"""Bytes of the widest element."""


def room(size: int, what: str, where: str = "for one kernel") -> None:
    """Raise MemoryLimitError where something takes more bytes than a kernel may take."""
    meter = present()
    most = MOST_BYTES if meter is None else meter.limit
    if size > most:
        raise MemoryLimitError(f"{what} would take {size} bytes, {most} are allowed {where}")


@contextmanager
def set_aside(size: int) -> Iterator[None]:
    """Count bytes that a library takes without telling while the context lasts: an array of which
    nothing is touched stands for them.
    """
    place = np.empty(size, np.uint8)
    yield
    del place


def affordable(op: Op, shape: Shape) -> tuple[int, ...]:
    """Return the shape of an operator's first result. Raises MemoryLimitError when it was not known
    before the operator ran and takes more bytes than a kernel may take.
    """
    extents, result = settled(shape), op.results[0]
    if None in result.shape:
        afford(result.dtype, extents)
    return extents


def afford(dtype: TensorType, extents: tuple[int, ...]) -> None:
    """Raise MemoryLimitError where a result whose shape was computed takes more bytes than a kernel
    may take, ExecutionError where no array has that shape.
    """
    item = NUMPY[dtype].itemsize if dtype in NUMPY else _WIDEST
    what = f"a result {shape_text(extents)} of {dtype.name}"
    room(element_count(extents) * item, what, "where the shape is computed")
    reason = impossible(extents)
    if reason is not None:
        raise ExecutionError(f"{what} has {reason}")
