"""TOPK_V2 kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array
from luciole.ir.ops.topk_v2 import TopkV2, most
from luciole.ir.rules import integers
from luciole.kernels.arg_min_max import TYPES
from luciole.kernels.core.limits import SORT_BYTES, set_aside
from luciole.kernels.core.registry import reference


@reference(TopkV2, *TYPES)
def topk_v2(op: TopkV2, x: Array, k: Array) -> tuple[Array, Array]:
    """Sort stably; NaN comes last."""
    count = most(x.shape, integers(k, "k", 1))
    falling = -x if x.dtype.kind == "f" else ~x  # the complement has no integer that overflows
    with set_aside(SORT_BYTES * x.shape[-1]):
        places = np.argsort(falling, axis=-1, kind="stable")[..., :count]
    return np.take_along_axis(x, places, -1), places.astype(np.int32)
