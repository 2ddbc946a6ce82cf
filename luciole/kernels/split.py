"""SPLIT kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array
from luciole.ir.ops.split import Split, part_of
from luciole.ir.rules import integers
from luciole.kernels.registry import ANY, reference


@reference(Split, *ANY)
def split(op: Split, split_dim: Array, x: Array) -> tuple[Array, ...]:
    """A copy of each part."""
    place = integers(split_dim, "split_dim", 1)
    part_of(x.shape, place, op.num_splits)
    return tuple(part.copy() for part in np.split(x, op.num_splits, axis=place[0]))
