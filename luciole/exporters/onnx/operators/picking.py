"""Write operators that pick elements by their places, or put elements there."""

from __future__ import annotations

import numpy as np

from luciole.exporters.onnx.building import (
    Building,
    constant_of,
    ints_of,
    known_shape,
)
from luciole.exporters.onnx.errors import RefusedError
from luciole.exporters.onnx.nodes import Term
from luciole.exporters.onnx.rules import rule
from luciole.ir import TensorType, Value
from luciole.ir.dtypes import NUMPY
from luciole.ir.ops.bucketize import Bucketize
from luciole.ir.ops.dynamic_update_slice import DynamicUpdateSlice
from luciole.ir.ops.gather import Gather
from luciole.ir.ops.gather_nd import GatherNd
from luciole.ir.ops.matrix_diag import MatrixDiag, MatrixSetDiag
from luciole.ir.ops.non_max_suppression import NonMaxSuppressionV4, NonMaxSuppressionV5
from luciole.ir.ops.one_hot import OneHot
from luciole.ir.ops.scatter_nd import ScatterNd
from luciole.ir.ops.segment_sum import SegmentSum
from luciole.ir.ops.sparse_to_dense import SparseToDense
from luciole.ir.ops.unsorted_segment import (
    UnsortedSegmentMax,
    UnsortedSegmentMin,
    UnsortedSegmentProd,
    UnsortedSegmentSum,
)
from luciole.ir.ops.where import Where


@rule(Gather)
def gather(k: Building, op: Gather) -> Term:
    """Give batches indices of their own only where the axis follows them."""
    rank = len(op.params.shape)
    axis, batches = op.axis % rank, op.batch_dims
    batches += len(op.indices.shape) if batches < 0 else 0
    if not batches:
        return k.add("Gather", k.of(op.params), k.of(op.indices), axis=axis)
    if axis != batches:
        raise RefusedError(f"batch_dims is {batches} and the axis {axis}: ONNX needs them equal")
    places = k.add("Unsqueeze", k.int64(op.indices), k.ints(-1))
    return k.add("GatherND", k.of(op.params), places, batch_dims=batches)


@rule(GatherNd)
def gather_nd(k: Building, op: GatherNd) -> Term:
    return k.add("GatherND", k.of(op.params), k.int64(op.indices))


@rule(ScatterNd)
def scatter_nd(k: Building, op: ScatterNd) -> Term:
    """Add updates to zeros: those of one place are summed up."""
    zeros = k.add("Expand", k.number(0, op.updates.dtype), k.int64(op.shape))
    return k.add("ScatterND", zeros, k.int64(op.indices), k.of(op.updates), reduction="add")


@rule(SparseToDense)
def sparse_to_dense(k: Building, op: SparseToDense) -> Term:
    shape = known_shape(op.output)
    rows = len(op.indices.shape)
    defaults = k.add("Expand", k.scalar(op.default_value), k.ints(*shape))
    places = k.int64(op.indices)
    places = places if rows == 2 else k.reshape(places, -1, len(shape))
    count = 1 if rows == 0 else known_shape(op.indices)[0]
    values = k.add("Expand", k.of(op.values), k.ints(count))
    return k.add("ScatterND", defaults, places, values)


@rule(DynamicUpdateSlice)
def dynamic_update_slice(k: Building, op: DynamicUpdateSlice) -> Term:
    """Put every element of the update at its place behind the start, which stays inside."""
    extents, sizes = known_shape(op.input), known_shape(op.update)
    most = k.ints(*(n - m for n, m in zip(extents, sizes, strict=True)))
    starts = k.add("Min", k.add("Max", k.int64(op.start_indices), k.ints(0)), most)
    grid = np.moveaxis(np.indices(sizes), 0, -1).astype(np.int64)
    places = k.add("Add", k.constant(grid), starts)
    return k.add("ScatterND", k.of(op.input), places, k.of(op.update))


@rule(OneHot)
def one_hot(k: Building, op: OneHot) -> Term:
    """Compare with all classes: ONNX's own operator counts negative indices from the end."""
    rank = len(op.indices.shape)
    axis = op.axis % (rank + 1)
    classes = _classes(k, op.depth, [1] * (rank - axis))
    shape = op.indices.shape
    indices = k.unsqueeze(k.int64(op.indices), [axis], (*shape[:axis], 1, *shape[axis:]))
    hot = k.add("Equal", indices, classes)
    return k.add("Where", hot, k.scalar(op.on_value), k.scalar(op.off_value))


def _classes(k: Building, depth: Value, behind: list[int]) -> Term:
    """Count the classes, with axes of one element behind them."""
    if depth.is_constant:
        (count,) = ints_of(depth, "the depth")
        return k.constant(np.arange(count, dtype=np.int64).reshape(-1, *behind))
    zero, one = (k.number(n, TensorType.INT64) for n in (0, 1))
    return k.reshape(k.add("Range", zero, k.reshape(k.int64(depth)), one), -1, *behind)


@rule(Where)
def where(k: Building, op: Where) -> Term:
    """List the places of true elements, in rows."""
    coordinates = k.add("NonZero", k.of(op.condition))
    places = k.add("Transpose", coordinates, perm=[1, 0])
    kind = op.output.dtype
    return places if kind == TensorType.INT64 else k.cast(places, kind)


@rule(Bucketize)
def bucketize(k: Building, op: Bucketize) -> Term:
    """Count the boundaries that are not above a number."""
    x, kind = k.of(op.input), op.input.dtype
    x = x if kind == TensorType.FLOAT64 else k.cast(x, TensorType.FLOAT32)
    boundaries = np.array(op.boundaries, np.float32)
    known = k.constant(boundaries.astype(NUMPY[kind]) if kind == TensorType.FLOAT64 else boundaries)
    below = k.add("Not", k.add("Less", k.add("Unsqueeze", x, k.ints(-1)), known))
    return k.add("ReduceSum", k.cast(below, TensorType.INT32), k.ints(-1), keepdims=0)


@rule(MatrixDiag)
def matrix_diag(k: Building, op: MatrixDiag) -> Term:
    *before, n = known_shape(op.diagonal)
    rows = k.unsqueeze(k.of(op.diagonal), [-2], (*before, 1, n))
    return k.add(
        "Where", k.constant(np.eye(n, dtype=np.bool_)), rows, k.number(0, op.diagonal.dtype)
    )


@rule(MatrixSetDiag)
def matrix_set_diag(k: Building, op: MatrixSetDiag) -> Term:
    """Lay the diagonal along the shorter side, whose length it has."""
    rows, columns = known_shape(op.input)[-2:]
    *before, n = known_shape(op.diagonal)
    shape, axis = ((*before, n, 1), -1) if rows <= columns else ((*before, 1, n), -2)
    laid = k.unsqueeze(k.of(op.diagonal), [axis], shape)
    return k.add("Where", k.constant(np.eye(rows, columns, dtype=np.bool_)), laid, k.of(op.input))


@rule(SegmentSum)
def segment_sum(k: Building, op: SegmentSum) -> Term:
    """Add up rows; their number follows from the last segment, so it must be known."""
    ids = constant_of(op.segment_ids, "segment_ids").astype(np.int64)
    count = int(ids[-1]) + 1 if ids.size else 0
    extents = k.ints(count, *known_shape(op.input)[1:])
    zeros = k.add("Expand", k.number(0, op.input.dtype), extents)
    return k.add("ScatterND", zeros, k.constant(ids[:, None]), k.of(op.input), reduction="add")


_LIMITS = {
    UnsortedSegmentSum: ("add", None),
    UnsortedSegmentProd: ("mul", None),
    UnsortedSegmentMax: ("max", "min"),
    UnsortedSegmentMin: ("min", "max"),
}
"""Function that joins the rows of a segment, and the limit of the type that fills a segment without
rows.
"""


@rule(*_LIMITS)
def unsorted_segment(
    k: Building,
    op: UnsortedSegmentSum | UnsortedSegmentProd | UnsortedSegmentMax | UnsortedSegmentMin,
) -> Term:
    """Join rows; those of negative segments go to one more, which is cut off."""
    (count,) = ints_of(op.num_segments, "num_segments")
    joined, limit = _LIMITS[type(op)]
    axes = len(op.segment_ids.shape)
    rest = known_shape(op.input)[axes:]
    kind = NUMPY[op.input.dtype]
    info = np.finfo(kind) if kind.kind == "f" else np.iinfo(kind)
    empty = int(joined == "mul") if limit is None else getattr(info, limit)
    start = k.constant(np.full((count + 1, *rest), empty, kind))
    ids = k.reshape(k.int64(op.segment_ids), -1, 1)
    ids = k.add("Where", k.add("Less", ids, k.ints(0)), k.ints(count), ids)
    rows = k.reshape(k.of(op.input), -1, *rest)
    whole = k.add("ScatterND", start, ids, rows, reduction=joined)
    return k.add("Slice", whole, k.ints(0), k.ints(count), k.ints(0))


@rule(NonMaxSuppressionV4)
def non_max_suppression(k: Building, op: NonMaxSuppressionV4) -> list[Term]:
    places, count = _chosen(k, op)
    return [k.cast(places, TensorType.INT32), k.cast(count, TensorType.INT32)]


@rule(NonMaxSuppressionV5)
def soft_non_max_suppression(k: Building, op: NonMaxSuppressionV5) -> list[Term]:
    """Leave scores as they are: ONNX does not lower them."""
    if constant_of(op.soft_nms_sigma, "soft_nms_sigma").any():
        raise RefusedError("soft_nms_sigma is not 0")
    places, count = _chosen(k, op)
    (most,) = ints_of(op.max_output_size, "max_output_size")
    scores = k.add("Gather", k.of(op.scores), places, axis=0)
    inside = k.add("Less", k.constant(np.arange(most, dtype=np.int64)), count)
    scores = k.add("Where", inside, scores, k.number(0, op.scores.dtype))
    kind = TensorType.INT32
    return [k.cast(places, kind), scores, k.cast(count, kind)]


def _overlap(k: Building, threshold: Value) -> Term:
    """Find the share above which ONNX drops a box, the next one below: here one with that share is
    dropped, too. Times 1 - 2^-24, a float becomes the next one.
    """
    if not threshold.is_constant:
        return k.add("Mul", k.reshape(k.of(threshold), 1), k.number(1 - 2.0**-24))
    share = constant_of(threshold, "iou_threshold").astype(np.float32).reshape(1)
    return k.constant(np.nextafter(share, np.float32(-1)))


def _chosen(k: Building, op: NonMaxSuppressionV4 | NonMaxSuppressionV5) -> tuple[Term, Term]:
    """Find the places of the best boxes, zeros behind them, and their number."""
    (most,) = ints_of(op.max_output_size, "max_output_size")
    boxes = k.add("Unsqueeze", k.of(op.boxes), k.ints(0))
    scores = k.add("Unsqueeze", k.of(op.scores), k.ints(0, 1))
    limits = [_overlap(k, op.iou_threshold), k.reshape(k.of(op.score_threshold), 1)]
    rows = k.add("NonMaxSuppression", boxes, scores, k.ints(most), *limits)
    kept = k.add("Gather", rows, k.number(2, TensorType.INT64), axis=1)
    count = k.add("Size", kept)
    zeros = k.constant(np.zeros(most, np.int64))
    whole = k.add("Concat", kept, zeros, axis=0)
    return k.add("Slice", whole, k.ints(0), k.ints(most), k.ints(0)), count
