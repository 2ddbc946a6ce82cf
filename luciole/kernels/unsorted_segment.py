"""UNSORTED_SEGMENT_SUM, _PROD, _MAX and _MIN kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops.unsorted_segment import (
    UnsortedSegment,
    UnsortedSegmentMax,
    UnsortedSegmentMin,
    UnsortedSegmentProd,
    UnsortedSegmentSum,
    segmented,
)
from luciole.ir.rules import integers
from luciole.kernels.arrays.coordinates import within
from luciole.kernels.core.limits import affordable
from luciole.kernels.core.registry import reference

COMBINED: dict[type[UnsortedSegment], np.ufunc] = {
    UnsortedSegmentSum: np.add,
    UnsortedSegmentProd: np.multiply,
    UnsortedSegmentMax: np.fmax,
    UnsortedSegmentMin: np.fmin,
}
TYPES = (TensorType.FLOAT32, TensorType.INT32)


@reference(UnsortedSegmentSum, *TYPES)
@reference(UnsortedSegmentProd, *TYPES)
@reference(UnsortedSegmentMax, *TYPES)
@reference(UnsortedSegmentMin, *TYPES)
def unsorted_segment(
    op: UnsortedSegment, x: Array, segment_ids: Array, num_segments: Array
) -> Array:
    """Reduce part after part; MAX and MIN leave NaN out, as LiteRT does.

    Raises ShapeError for an id that is not below ``num_segments``.
    """
    (count,) = integers(num_segments, "num_segments", 1)
    shape = affordable(op, segmented(x.shape, segment_ids.shape, count))
    y = np.full(shape, _start(op, x), x.dtype)
    kept = segment_ids >= 0
    COMBINED[type(op)].at(y, (within(segment_ids[kept], count, "the result"),), x[kept])
    return y


def _start(op: UnsortedSegment, x: Array) -> Array:
    """Return the value of an empty segment."""
    limits = np.finfo(x.dtype) if x.dtype.kind == "f" else np.iinfo(x.dtype)
    starts = {
        UnsortedSegmentSum: 0,
        UnsortedSegmentProd: 1,
        UnsortedSegmentMax: limits.min,
        UnsortedSegmentMin: limits.max,
    }
    return np.array(starts[type(op)], x.dtype)
