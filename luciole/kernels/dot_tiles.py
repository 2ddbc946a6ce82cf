"""The compiled loops of convolutions with 8 bit weights under float inputs.

Inputs are quantized into a padded copy first, so that every window is whole. Records are written,
and their fields named, by ``hybrid_layer``.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from luciole.kernels import jit
from luciole.kernels.jit import LANES, Record, floats, words
from luciole.kernels.jit.dots import (
    add_dots,
    highest,
    integer_rows,
    raised,
    scaled,
    write_rounded,
)
from luciole.kernels.jit.pixels import pixels, write_at
from luciole.kernels.pixel_tiles import TAP_FIELDS

INFINITY = 0x7F800000
"""The bit pattern of infinity: those of NaN are larger."""

LARGEST = 127
"""Quantized inputs lie between -127 and 127."""


@jit.kernel
def quantize(r: Record) -> None:
    """Quantize each image on a grid of its own, and keep what a sum of products is worth."""
    for image in range(r[2]):
        x, to = r[0] + image * r[3], r[1] + image * r[4]
        bits = jit.counters(1, 1, 1, 1)
        whole = r[5] * r[6] & -LANES
        for k in range(0, whole, LANES):
            bits = raised(bits, x + 4 * k, LANES)
        bits = raised(bits, x + 4 * whole, r[5] * r[6] - whole)
        words(r[8])[image] = np.uint32(highest(bits))
        span = floats(r[8])[image]
        inverse, scale = np.float32(LARGEST) / span, span / np.float32(LARGEST)
        if highest(bits) >= INFINITY:
            inverse, scale = np.float32(0), np.float32(np.nan)
        elif inverse == np.inf:
            inverse, scale = np.float32(0), np.float32(1)
        floats(r[8])[image] = scale * floats(r[9])[0]
        whole = r[6] & -LANES
        for _ in range(r[5]):
            for k in range(0, whole, LANES):
                write_rounded(x + 4 * k, inverse, to + k, LANES)
            if whole < r[6]:
                write_rounded(x + 4 * whole, inverse, to + whole, r[6] - whole)
            x += 4 * r[6]
            to += r[7]


@cache
def windows(count: int, vectors: int, tanh: int) -> jit.Kernel:
    """One block of outputs: tiles of ``count`` pixels and ``vectors`` times 16 outputs, bent by the
    hyperbolic tangent where ``tanh`` is 1.
    """
    lanes, size = vectors * LANES, 4 * (2 * count + TAP_FIELDS)

    @jit.kernel
    def integer_windows(r: Record) -> None:
        limits = floats(r[7])
        for image in range(r[2]):
            x, y = r[0] + image * r[3], r[1] + image * r[4]
            factor = floats(r[18])[image]
            for table in range(r[5], r[5] + r[6] * size, size):
                at = pixels(count, x, table, 1)
                tile = integer_rows(count, vectors, r[15])
                for ky in range(r[19]):
                    for run in range(r[12]):
                        offset = ky * r[8] + run * r[9]
                        weights = r[14] + ky * r[10] + run * r[11]
                        for k in range(r[13]):
                            tile = add_dots(tile, at, offset + 4 * k, weights + 4 * lanes * k)
                to = pixels(count, y, table + 4 * count, 4)
                results = scaled(tile, factor, r[16])
                results = jit.tanh(results) if tanh else results
                write_at(results, limits[0], limits[1], to, r[17])

    return integer_windows
