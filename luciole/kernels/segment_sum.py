"""SEGMENT_SUM kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops.segment_sum import SegmentSum, segments
from luciole.ir.rules import agree
from luciole.kernels.core.registry import reference


@reference(SegmentSum, TensorType.FLOAT32, TensorType.INT32)
def segment_sum(op: SegmentSum, x: Array, segment_ids: Array) -> Array:
    """Add rows one after the other."""
    agree("elements", len(segment_ids), len(x), "segment_ids", "the first axis")
    y = np.zeros((segments(segment_ids), *x.shape[1:]), x.dtype)
    np.add.at(y, (segment_ids,), x)
    return y
