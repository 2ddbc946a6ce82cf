"""The compiled loop that writes floats as the numbers of their levels, in bytes."""

from __future__ import annotations

from functools import cache

import numpy as np

from luciole.kernels import jit
from luciole.kernels.jit import LANES
from luciole.kernels.jit.vector.quantizing import level_limits, write_levels, write_some_levels
from luciole.kernels.layers.int8.byte_records import LevelsRecord


@cache
def kernel(thresholds: int) -> jit.Kernel:
    """Make the kernel for this number of thresholds, which are kept in registers."""

    @jit.kernel
    def lq_level_bytes(r: LevelsRecord) -> None:
        """Write twice the number of each float's level, line by line."""
        limits = level_limits(r.thresholds, thresholds)
        grid = np.float32(r.per_step), np.float32(r.first)
        whole = r.length & -LANES
        for image in range(r.images):
            for row in range(r.rows):
                x = r.x + image * r.x_image + 4 * row * r.length
                to = r.to + image * r.to_image + row * r.to_row
                for k in range(0, whole, LANES):
                    write_levels(x + 4 * k, limits, grid, thresholds, to + k)
                if whole < r.length:
                    rest = r.length - whole
                    x, to = x + 4 * whole, to + whole
                    write_some_levels(x, limits, grid, thresholds, to, rest)

    return lq_level_bytes
