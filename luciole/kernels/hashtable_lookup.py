"""HASHTABLE_LOOKUP kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, ShapeError
from luciole.ir.ops.hashtable_lookup import HashtableLookup
from luciole.ir.rules import agree
from luciole.ir.strings import OBJECTS, blank
from luciole.kernels.core.limits import affordable
from luciole.kernels.core.registry import ANYTHING, reference


@reference(HashtableLookup, *ANYTHING)
def hashtable_lookup(
    op: HashtableLookup, lookup: Array, key: Array, value: Array
) -> tuple[Array, Array]:
    """Find each key by binary search. Raises ShapeError for keys that are not sorted."""
    agree("rows", len(key), len(value), "key", "value")
    if (key[1:] < key[:-1]).any():
        raise ShapeError("key is not sorted, it must be")
    shape = affordable(op, (len(lookup), *value.shape[1:]))
    y = blank(shape) if value.dtype == OBJECTS else np.zeros(shape, value.dtype)
    place = np.searchsorted(key, lookup)
    hits = place < len(key)
    hits[hits] = key[place[hits]] == lookup[hits]
    y[hits] = value[place[hits]]
    return y, hits.astype(np.uint8)
