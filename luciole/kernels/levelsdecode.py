"""LevelsDecode kernel: models are loaded with its results in place of it, so NumPy will do."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops.fill import not_negative
from luciole.ir.ops.levelsdecode import CodedLevels, LevelsDecode, read_levels
from luciole.ir.rules import integers
from luciole.kernels.core.limits import affordable
from luciole.kernels.core.registry import reference


@reference(LevelsDecode, TensorType.UINT8)
def decode(
    op: LevelsDecode,
    codes: Array,
    dims: Array,
    basis: Array,
    scales: Array | None = None,
    offsets: Array | None = None,
) -> Array:
    """Unpack the codes and take the levels that they stand for."""
    shape = affordable(op, not_negative(integers(dims, "dims"), "dims"))
    numbers, levels = read_levels(op, CodedLevels(codes, basis, scales, offsets), shape)
    decoded = levels.decode(numbers) if numbers.size else numbers
    return np.ascontiguousarray(np.moveaxis(decoded, 0, op.axis), basis.dtype)
