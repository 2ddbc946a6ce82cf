"""The compiled loops of float convolutions and matrix products.

Addresses are plain integers and steps are in bytes. With ``tanh`` 1, results pass the hyperbolic
tangent. A kernel is one function with few helpers, because each costs time when it is compiled.
"""

from __future__ import annotations

from functools import cache

from luciole.kernels import jit
from luciole.kernels.jit import LANES, words
from luciole.kernels.jit.vector.pixels import (
    Places,
    add_scaled,
    add_weighted,
    add_weighted_first,
    pixels,
    rows_of,
    write_at,
)
from luciole.kernels.jit.vector.vectors import Floats
from luciole.kernels.layers.geometry.pixel_tiles import ACROSS, DOWN, FIRST, TAP_FIELDS, clamp_at
from luciole.kernels.layers.geometry.sequence import Tiled


class FloatRecord(Tiled):
    """Images, tiles of their pixels, and the weights that they are multiplied by."""

    x: int
    y: int
    images: int
    x_image: int
    """Bytes from image to image."""
    y_image: int
    limits: int
    """The address of a ``Clamp``."""
    down: int
    """Bytes from tap to tap in the input, and in the weights."""
    across: int
    weights_down: int
    weights_across: int
    joined: int
    """Whether taps of a row are neighbours in memory."""
    depth: int
    """Inputs of a tap."""
    block: int
    """Bytes of a block's weights, for kernels that do several."""
    weights: int
    starts: int
    outputs: int
    """Outputs of the block, or blocks, or channels that are left."""


@jit.inlined
def _add_channels(
    tile: Floats, at: Places, offset: int, weights: int, channels: int, step: int
) -> Floats:
    """Add the products of one tap: weights of its channels lie ``step`` bytes apart."""
    for k in range(channels):
        tile = add_scaled(tile, at, offset + 4 * k, weights + step * k)
    return tile


@jit.inlined
def _add_taps(
    tile: Floats, at: Places, offset: int, weights: int, taps: int, across: int, step: int
) -> Floats:
    """Add the products of taps in a row, each channel's with its own weights."""
    if taps == 3:
        tile = add_weighted(tile, at, offset, weights)
        tile = add_weighted(tile, at, offset + across, weights + step)
        return add_weighted(tile, at, offset + 2 * across, weights + 2 * step)
    for kx in range(taps):
        tile = add_weighted(tile, at, offset + kx * across, weights + kx * step)
    return tile


@cache
def windows(count: int, vectors: int, tanh: int) -> jit.Kernel:
    """Make the kernel of one block of outputs, each with weights for every channel: tiles of
    ``count`` pixels and ``vectors`` times 16 outputs. Taps of a row that are neighbours in memory
    are one loop.
    """
    lanes, size = vectors * LANES, 4 * (2 * count + TAP_FIELDS)

    @jit.kernel
    def float_windows(r: FloatRecord) -> None:
        limits = clamp_at(r.limits, 0)
        for image in range(r.images):
            x, y = r.x + image * r.x_image, r.y + image * r.y_image
            for table in range(r.table, r.table + r.tiles * size, size):
                taps = words(table + 8 * count)
                joined, apart = (1, taps[ACROSS] * r.depth), (taps[ACROSS], r.depth)
                columns, length = joined if r.joined else apart
                at = pixels(count, x, table, 4)
                tile = rows_of(count, vectors, r.starts)
                for ky in range(taps[DOWN]):
                    for kx in range(columns):
                        offset = ky * r.down + kx * r.across
                        weights = (
                            r.weights + (taps[FIRST] + kx) * r.weights_across + ky * r.weights_down
                        )
                        tile = _add_channels(tile, at, offset, weights, length, 4 * lanes)
                tile = jit.tanh(tile) if tanh else tile
                to = pixels(count, y, table + 4 * count, 4)
                write_at(tile, limits.low, limits.high, to, r.outputs)

    return float_windows


@cache
def channels(count: int, vectors: int, tanh: int) -> jit.Kernel:
    """Make the kernel of outputs that have weights for the channel of their own number, in whole
    blocks of ``vectors`` times 16. Three taps in a row, the usual number, are one step.
    """
    lanes, size = vectors * LANES, 4 * (2 * count + TAP_FIELDS)

    @jit.kernel
    def float_channels(r: FloatRecord) -> None:
        limits, across, tap = clamp_at(r.limits, 0), r.across, r.weights_across
        for image in range(r.images):
            x, y = r.x + image * r.x_image, r.y + image * r.y_image
            for table in range(r.table, r.table + r.tiles * size, size):
                at, taps = pixels(count, x, table, 4), words(table + 8 * count)
                for block in range(r.outputs):
                    tile = rows_of(count, vectors, r.starts + 4 * lanes * block)
                    offset = 4 * lanes * block
                    weights = r.weights + block * r.block + taps[FIRST] * tap
                    for _ in range(taps[DOWN]):
                        tile = _add_taps(tile, at, offset, weights, taps[ACROSS], across, tap)
                        offset += r.down
                        weights += r.weights_down
                    tile = jit.tanh(tile) if tanh else tile
                    to = pixels(count, y + 4 * lanes * block, table + 4 * count, 4)
                    write_at(tile, limits.low, limits.high, to, lanes)

    return float_channels


@cache
def last_channels(count: int, tanh: int) -> jit.Kernel:
    """Make the kernel of ``channels`` for a block of fewer than 16 outputs."""
    size = 4 * (2 * count + TAP_FIELDS)

    @jit.kernel
    def float_last_channels(r: FloatRecord) -> None:
        limits = clamp_at(r.limits, 0)
        for image in range(r.images):
            x, y = r.x + image * r.x_image, r.y + image * r.y_image
            for table in range(r.table, r.table + r.tiles * size, size):
                at, taps = pixels(count, x, table, 4), words(table + 8 * count)
                tile = rows_of(count, 1, r.starts)
                for ky in range(taps[DOWN]):
                    for kx in range(taps[ACROSS]):
                        offset = ky * r.down + kx * r.across
                        weights = (
                            r.weights + (taps[FIRST] + kx) * r.weights_across + ky * r.weights_down
                        )
                        tile = add_weighted_first(tile, at, offset, weights, r.outputs)
                tile = jit.tanh(tile) if tanh else tile
                to = pixels(count, y, table + 4 * count, 4)
                write_at(tile, limits.low, limits.high, to, r.outputs)

    return float_last_channels
