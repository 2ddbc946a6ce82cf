"""Random records, where there are no others: ``random:N`` in place of a file's name."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

import numpy as np

from luciole.ir.dtypes import Array
from luciole.tools.data.collecting import Rows, Stored, Wanted, collect
from luciole.tools.data.errors import DataError
from luciole.tools.data.fitting import InputSpec

_PREFIX = "random:"
_REACH, _MOST = 5.0, 100
"""Floats are in between -5 and 5, integers from 0 to 100, as those of ONE's record-minmax."""


def random_count(path: str) -> int | None:
    """Return the number of records that ``random:N`` asks for, None for another name and for a file
    that is called so. Raises DataError where N is no number.
    """
    if not path.startswith(_PREFIX) or os.path.exists(path):
        return None
    count = path.removeprefix(_PREFIX)
    if not re.fullmatch("[0-9]{1,18}", count):
        raise DataError("random:N makes N records: N is a whole number")
    return int(count)


def read_random(path: str, request: Wanted) -> Stored:
    """Make records of every input, the same ones each time: floats, which a quantized input takes,
    too, else integers, or zeros and ones. Unknown extents are 1.
    """
    count = random_count(path)
    if not count:
        raise DataError("at least 1 record is needed")
    generator = np.random.default_rng(0)
    rows = [_rows(spec, count, generator) for spec in request.specs]
    return Stored(collect(request, [rows], count), count)


def _rows(spec: InputSpec, count: int, generator: np.random.Generator) -> Rows:
    if spec.is_text:
        raise DataError(f"input {spec.name!r} takes texts: there are no random ones")
    extents = tuple(1 if extent is None else extent for extent in spec.shape)
    dtype = np.dtype(np.float32) if spec.store is not None else spec.dtype

    def blocks(records: int) -> Iterator[Array]:
        for _ in range(records):
            yield _numbers((1, *extents), dtype, generator)

    return Rows("random numbers", (count, *extents), dtype, blocks)


def _numbers(
    shape: tuple[int, ...], dtype: np.dtype[np.generic], generator: np.random.Generator
) -> Array:
    if dtype.kind in "fc":
        return generator.uniform(-_REACH, _REACH, shape).astype(dtype)
    return generator.integers(0, 2 if dtype.kind == "b" else _MOST + 1, shape).astype(dtype)
