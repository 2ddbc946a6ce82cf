"""BCQ_GATHER kernels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array, TensorType
from luciole.ir.ops.bcq_fully_connected import Cluster, clusters_of, decoded, signs
from luciole.ir.ops.bcq_gather import BCQGather
from luciole.kernels.core.limits import room
from luciole.kernels.core.registry import reference
from luciole.kernels.gather import check_indices


@reference(BCQGather, TensorType.FLOAT32)
def bcq_gather(
    op: BCQGather, scales: Array, binary: Array, indices: Array, clusters: Array
) -> Array:
    """Decode the gathered rows from their own planes only; columns need the whole matrix."""
    groups, along = clusters_of(clusters, len(binary)), op.axis % 2
    rows, hidden = sum(c.size for c in groups), op.input_hidden_size
    check_indices(indices, along, (rows, hidden)[along])
    if along:
        room(8 * len(binary) * hidden, "the matrix's signs")
        matrix = decoded(scales, binary, clusters, hidden)
        return np.take(matrix, indices, axis=1).astype(np.float32)
    numbers = indices.ravel().astype(np.intp)
    return _rows(scales, binary, groups, numbers, hidden).reshape(*indices.shape, hidden)


def _rows(
    scales: Array, binary: Array, groups: Sequence[Cluster], numbers: NDArray[np.intp], hidden: int
) -> Array:
    """Decode the rows [n, hidden] of the matrix that have these numbers, cluster by cluster."""
    y = np.zeros((len(numbers), hidden))
    plane = row = 0
    for bits, size in groups:
        inside = np.flatnonzero((numbers >= row) & (numbers < row + size))
        for k in range(bits if inside.size else 0):
            places = plane + k * size + numbers[inside] - row
            y[inside] += scales[places, None] * signs(binary[places], hidden)
        plane += bits * size
        row += size
    return y.astype(np.float32)
