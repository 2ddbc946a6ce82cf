"""Where tensors live while a model runs."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from luciole.ir import Array, LucioleError, Value
from luciole.ir.dtypes import NUMPY
from luciole.ir.value import element_count, shape_text

ALIGNMENT = 64
"""Bytes: one cache line, one AVX-512 register."""


class MemoryLimitError(LucioleError, MemoryError):
    """A model asks for more memory than the caller allows."""


def allocate(values: Iterable[Value], limit: int) -> dict[Value, Array]:
    """One zeroed array per tensor, each at a multiple of 64 bytes in one block.

    Every tensor has a place of its own, so that all of them can be read after a run. Raises
    MemoryLimitError before anything is taken when they need more than ``limit`` bytes together.
    """
    places: list[tuple[Value, int]] = []
    size = 0
    for value in values:
        if value.dtype not in NUMPY:
            continue
        places.append((value, size))
        bytes_ = element_count(value.dims) * NUMPY[value.dtype].itemsize
        size += -(-bytes_ // ALIGNMENT) * ALIGNMENT
        if size > limit:
            raise MemoryLimitError(
                f"tensor {value.name!r} {shape_text(value.shape)} needs memory "
                f"beyond the limit of {limit} bytes: "
                "raise memory_limit if the model is to be trusted"
            )
    block = np.zeros(size + ALIGNMENT, np.uint8)
    start = -block.ctypes.data % ALIGNMENT
    return {value: _view(block, start + at, value) for value, at in places}


def _view(block: Array, at: int, value: Value) -> Array:
    dtype = NUMPY[value.dtype]
    end = at + element_count(value.dims) * dtype.itemsize
    return block[at:end].view(dtype).reshape(value.dims)
