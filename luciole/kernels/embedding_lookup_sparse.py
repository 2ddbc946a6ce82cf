"""EMBEDDING_LOOKUP_SPARSE kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops.embedding_lookup_sparse import EmbeddingLookupSparse, placed
from luciole.ir.rules import integers
from luciole.kernels.arrays.coordinates import columns, within
from luciole.kernels.core.limits import affordable
from luciole.kernels.core.registry import reference
from luciole.schema.enums import CombinerType


@reference(EmbeddingLookupSparse, TensorType.FLOAT32)
def embedding_lookup_sparse(
    op: EmbeddingLookupSparse,
    ids: Array,
    indices: Array,
    dense_shape: Array,
    weights: Array,
    value: Array,
) -> Array:
    """Combine the weighted rows, one after the other; places without a row are 0."""
    dense = integers(dense_shape, "dense_shape", indices.shape[1])
    y = np.zeros(affordable(op, placed(value.shape, dense, len(dense))), np.float32)
    places = columns(indices[:, :-1], dense[:-1], "the result") or (np.zeros(len(ids), np.intp),)
    sums = y if len(dense) > 1 else y[None]
    rows = value[within(ids, len(value), "axis 0 of value")]
    np.add.at(sums, places, rows * weights.reshape(-1, *[1] * (value.ndim - 1)))
    if op.combiner != CombinerType.SUM:
        _divide(op, sums, places, weights)
    return y


def _divide(
    op: EmbeddingLookupSparse, sums: Array, places: tuple[Array, ...], weights: Array
) -> None:
    """Divide the sums by the sums of their weights."""
    mean = op.combiner == CombinerType.MEAN
    totals = np.zeros(sums.shape[: len(places)], np.float32)
    np.add.at(totals, places, weights if mean else weights * weights)
    hit = np.zeros(totals.shape, np.bool_)
    hit[places] = True
    divisors = (totals if mean else np.sqrt(totals))[hit]
    sums[hit] /= divisors.reshape(-1, *[1] * (sums.ndim - len(places)))
