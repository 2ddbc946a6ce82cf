"""PACK kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array
from luciole.ir.ops.pack import Pack, packed
from luciole.kernels.registry import ANY, reference


@reference(Pack, *ANY)
def pack(op: Pack, inputs: tuple[Array, ...]) -> Array:
    """Side by side along a new axis."""
    packed([x.shape for x in inputs], op.axis)
    return np.stack(inputs, axis=op.axis)
