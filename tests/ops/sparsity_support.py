"""Arrays that are stored sparse."""

from __future__ import annotations

from typing import Any

import numpy as np

from luciole.schema.enums import DimensionType
from luciole.schema.tables import DimensionMetadata, Int32Vector, SparsityParameters


def solid(extent: int) -> DimensionMetadata:
    return DimensionMetadata(dense_size=extent)


def compressed(
    segments: list[int], indices: list[int], cls: Any = Int32Vector
) -> DimensionMetadata:
    return DimensionMetadata(
        format=DimensionType.SPARSE_CSR,
        array_segments=cls(values=np.array(segments)),
        array_indices=cls(values=np.array(indices)),
    )


def sparsity(order: list[int], blocks: list[int], *levels: DimensionMetadata) -> SparsityParameters:
    return SparsityParameters(
        traversal_order=np.array(order, np.int32),
        block_map=np.array(blocks, np.int32),
        dim_metadata=list(levels),
    )
