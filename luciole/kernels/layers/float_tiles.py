"""The compiled loops of float convolutions and matrix products.

Addresses are plain integers and steps are in bytes. Records are written, and their fields named, by
``float_layer.Layer``. With ``tanh`` 1, results are bent by the hyperbolic tangent. A kernel is one
function with few helpers, because each costs time when it is compiled.
"""

from __future__ import annotations

from functools import cache

from luciole.kernels import jit
from luciole.kernels.jit import LANES, Record, floats, words
from luciole.kernels.jit.pixels import (
    add_scaled,
    add_weighted,
    add_weighted_first,
    pixels,
    rows_of,
    write_at,
)
from luciole.kernels.layers.pixel_tiles import TAP_FIELDS


@cache
def windows(count: int, vectors: int, tanh: int) -> jit.Kernel:
    """One block of outputs, each with weights for every channel: tiles of ``count`` pixels and
    ``vectors`` times 16 outputs. Taps of a row that are neighbours in memory are one loop.
    """
    lanes, size = vectors * LANES, 4 * (2 * count + TAP_FIELDS)

    @jit.kernel
    def float_windows(r: Record) -> None:
        limits = floats(r[7])
        for image in range(r[2]):
            x, y = r[0] + image * r[3], r[1] + image * r[4]
            for table in range(r[5], r[5] + r[6] * size, size):
                taps = words(table + 8 * count)
                columns, length = (1, taps[2] * r[13]) if r[12] else (taps[2], r[13])
                at = pixels(count, x, table, 4)
                tile = rows_of(count, vectors, r[15])
                for ky in range(taps[1]):
                    for kx in range(columns):
                        offset = ky * r[8] + kx * r[9]
                        weights = r[14] + (taps[0] + kx) * r[11] + ky * r[10]
                        for k in range(length):
                            tile = add_scaled(tile, at, offset + 4 * k, weights + 4 * lanes * k)
                tile = jit.tanh(tile) if tanh else tile
                to = pixels(count, y, table + 4 * count, 4)
                write_at(tile, limits[0], limits[1], to, r[16])

    return float_windows


@cache
def channels(count: int, vectors: int, tanh: int) -> jit.Kernel:
    """Outputs that have weights for the channel of their own number, in whole blocks of ``vectors``
    times 16. Three taps in a row, the usual number, are one step.
    """
    lanes, size = vectors * LANES, 4 * (2 * count + TAP_FIELDS)

    @jit.kernel
    def float_channels(r: Record) -> None:
        limits, across, tap = floats(r[7]), r[9], r[11]
        for image in range(r[2]):
            x, y = r[0] + image * r[3], r[1] + image * r[4]
            for table in range(r[5], r[5] + r[6] * size, size):
                at, taps = pixels(count, x, table, 4), words(table + 8 * count)
                for block in range(r[16]):
                    tile = rows_of(count, vectors, r[15] + 4 * lanes * block)
                    offset = 4 * lanes * block
                    weights = r[14] + block * r[13] + taps[0] * tap
                    for _ in range(taps[1]):
                        if taps[2] == 3:
                            tile = add_weighted(tile, at, offset, weights)
                            tile = add_weighted(tile, at, offset + across, weights + tap)
                            tile = add_weighted(tile, at, offset + 2 * across, weights + 2 * tap)
                        else:
                            for kx in range(taps[2]):
                                tile = add_weighted(
                                    tile, at, offset + kx * across, weights + kx * tap
                                )
                        offset += r[8]
                        weights += r[10]
                    tile = jit.tanh(tile) if tanh else tile
                    to = pixels(count, y + 4 * lanes * block, table + 4 * count, 4)
                    write_at(tile, limits[0], limits[1], to, lanes)

    return float_channels


@cache
def last_channels(count: int, tanh: int) -> jit.Kernel:
    """The same for a block of fewer than 16 outputs."""
    size = 4 * (2 * count + TAP_FIELDS)

    @jit.kernel
    def float_last_channels(r: Record) -> None:
        limits = floats(r[7])
        for image in range(r[2]):
            x, y = r[0] + image * r[3], r[1] + image * r[4]
            for table in range(r[5], r[5] + r[6] * size, size):
                at, taps = pixels(count, x, table, 4), words(table + 8 * count)
                tile = rows_of(count, 1, r[15])
                for ky in range(taps[1]):
                    for kx in range(taps[2]):
                        offset = ky * r[8] + kx * r[9]
                        weights = r[14] + (taps[0] + kx) * r[11] + ky * r[10]
                        tile = add_weighted_first(tile, at, offset, weights, r[16])
                tile = jit.tanh(tile) if tanh else tile
                to = pixels(count, y, table + 4 * count, 4)
                write_at(tile, limits[0], limits[1], to, r[16])

    return float_last_channels
