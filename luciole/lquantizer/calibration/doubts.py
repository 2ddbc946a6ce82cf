"""Say why records may teach less than they seem to: what is learned from them is learned all the
same, and its figures look good.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from luciole.interpreter.records import Records
from luciole.interpreter.samples import Samples
from luciole.ir import Array
from luciole.ir.text.common import one_line
from luciole.ir.value import element_count

_FEW = 10
"""Records below which ranges and levels are of these alone: a regression with 8 of them had 2.6
times the error of one with 32, and 43 dB on the 8."""
_LEVELS = 16
"""Different numbers below which an input has fewer than 4 bits tell apart."""
_LEAST, _SHOWN = 64, 4
"""Numbers from which on it is odd that they hardly differ, and different ones that are named."""


def doubts(records: Records) -> Iterator[str]:
    """Warn of records that teach little: few of them, inputs whose records are all equal, and
    inputs of floats with hardly any different numbers, as a wrong preprocessing leaves behind.
    """
    count = len(next(iter(records.values()), ()))
    if 0 < count < _FEW:
        only = "1 record teaches" if count == 1 else f"{count} records teach"
        yield f"only {only}: what is learned fits them alone, and so do the figures: give 100 or so"
    for name, array in records.items():
        why = _doubt(array)
        if why is not None:
            yield f"input {one_line(name)!r}: {why}: is it what the network was trained on?"


def _doubt(array: Samples) -> str | None:
    """Describe the oddity of an input's records [records, ...], None where there is none."""
    size = element_count(array.shape)
    if array.dtype.kind != "f" or not size:
        return None
    values = _few_values(array)
    if values is not None and len(values) == 1:
        return f"every number of all records is {values[0]:g}"
    first = array[0]
    if len(array) > 1 and all(np.array_equal(array[n], first) for n in range(len(array))):
        return f"its {len(array)} records are all the same"
    if values is None or size < _LEAST:
        return None
    shown = ", ".join(f"{x:g}" for x in values[:_SHOWN])
    ellipsis = ", ..." if len(values) > _SHOWN else ""
    return f"it has only {len(values)} different numbers, {shown}{ellipsis}"


def _few_values(array: Samples) -> Array | None:
    """Collect the distinct numbers of an array in order, None for ``_LEVELS`` and more."""
    distinct = np.empty(0, array.dtype)
    for number in range(len(array)):
        distinct = np.union1d(distinct, array[number])
        if len(distinct) >= _LEVELS:
            return None
    return distinct
