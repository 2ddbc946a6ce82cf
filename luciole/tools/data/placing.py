"""Where the records that are read lie: in memory, or in a temporary file where they are many."""

from __future__ import annotations

from typing import Any

import numpy as np

from luciole.files import scratch
from luciole.interpreter.samples import release
from luciole.ir.dtypes import Array

IN_MEMORY = 64_000_000
"""Bytes of records that lie in memory at the most."""


def place_for(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Make an array to be filled: in memory where it is small, holds texts, or where no file has
    room.
    """
    size = int(np.prod(shape)) * dtype.itemsize
    file = None if size <= IN_MEMORY or dtype.hasobject else scratch(size)
    if file is None:
        return np.empty(shape, dtype)
    with file:
        return np.memmap(file, dtype, "r+", shape=shape)


def fill(place: Array, contents: Array) -> None:
    """Copy records to their place."""
    place[...] = contents
    release(place)
