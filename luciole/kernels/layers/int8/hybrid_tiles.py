"""The compiled loops of layers with 8 bit weights under float inputs, besides the loops of
``dot_tiles``: how inputs are quantized, and windows over each channel.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from luciole.kernels import jit
from luciole.kernels.jit import LANES, Single
from luciole.kernels.jit.vector.bytes import in_lanes, store_all_bytes, store_bytes
from luciole.kernels.jit.vector.dots import add_taps
from luciole.kernels.jit.vector.elementwise import number
from luciole.kernels.jit.vector.grids import (
    highest,
    integer_multiples,
    larger_of_both,
    raised_both,
    scaled_in_turn,
    write_all_on_grid,
    write_channels_at,
    write_on_grid,
)
from luciole.kernels.jit.vector.pixels import pixels
from luciole.kernels.layers.geometry.pixel_tiles import TAP_FIELDS, clamp_at
from luciole.kernels.layers.int8.byte_layer import ZERO
from luciole.kernels.layers.int8.byte_records import (
    ChannelsRecord,
    QuantizeRecord,
    image_grid_at,
)

INFINITY = 0x7F800000
"""The bit pattern of infinity: those of NaN are larger."""

LARGEST = 127
"""Numbers without a zero point lie between -127 and 127."""

Pair = tuple[Single, Single]


@jit.separate
def _largest(x: int, count: int) -> tuple[int, int]:
    """Find the bit patterns of the largest of ``count`` floats and of the magnitude of the least; 0
    where there are none above, or below, 0.
    """
    first = second = jit.counters(1, 1, 1, 2)
    done = count & -2 * LANES
    for k in range(0, done, 2 * LANES):
        first = raised_both(first, x + 4 * k, LANES)
        second = raised_both(second, x + 4 * (k + LANES), LANES)
    for k in range(done, count, LANES):
        first = raised_both(first, x + 4 * k, min(count - k, LANES))
    both = larger_of_both(first, second)
    return highest(both, 0), highest(both, 1)


@jit.separate
def _zero_point(least: float, most: float) -> int:
    """Compute a zero point as ``hybrid._zero_points`` does."""
    of_least, of_most = -128 - least, 127 - most
    chosen = of_least if 128 - least < 127 + most else of_most
    rounded = int(abs(chosen) + 0.5)
    return max(-128, min(127, rounded if chosen >= 0 else -rounded))


@jit.separate
def _fill(start: int, end: int, byte: int) -> None:
    """Write a byte to every place from ``start`` to before ``end``."""
    while end - start >= LANES:
        store_all_bytes(in_lanes(byte), 0, 255, start)
        start += LANES
    if start < end:
        store_bytes(in_lanes(byte), 0, 255, start, end - start)


@jit.separate
def _write(x: int, count: int, grid: Pair, limits: Pair, to: int, room: int) -> None:
    """Quantize ``count`` floats; whatever is in the ``room`` behind them may be written too."""
    whole = count & -LANES
    for k in range(0, whole, LANES):
        write_all_on_grid(x + 4 * k, LANES, grid, limits, to + k)
    left = count - whole
    if left and room >= whole + LANES:
        write_all_on_grid(x + 4 * whole, left, grid, limits, to + whole)
    elif left:
        write_on_grid(x + 4 * whole, left, grid, limits, to + whole, left)


Grid = tuple[Single, Single, int]
"""Factors that make floats integers and back, and the byte of 0."""


@jit.separate
def grid_without_zero(x: int, count: int) -> Grid:
    """Find the grid of ``count`` floats that ``hybrid.quantize_rows`` does."""
    up, down = _largest(x, count)
    span = number(max(up, down))
    inverse, scale = np.float32(LARGEST) / span, span / np.float32(LARGEST)
    if max(up, down) >= INFINITY:
        inverse, scale = np.float32(0), np.float32(np.nan)
    elif inverse == np.inf:
        inverse, scale = np.float32(0), np.float32(1)
    return inverse, scale, ZERO


@jit.separate
def grid_with_zero(x: int, count: int) -> Grid:
    """Find the grid of ``count`` floats that ``hybrid.quantize_rows_with_zero`` does."""
    up, down = _largest(x, count)
    finite = max(up, down) < INFINITY
    most = np.float64(number(up)) if finite else np.float64(0)
    least = -np.float64(number(down)) if finite else np.float64(0)
    scale = (most - least) / 255.0 if least < most else 1.0
    point = _zero_point(least / scale, most / scale)
    single = np.float32(scale) if finite else np.float32(np.nan)
    inverse = np.float32(1.0 / np.float64(single))
    if not (least < most and inverse < np.inf):
        inverse = np.float32(0)
    return inverse, single, point + ZERO


@jit.separate
def write_row(x: int, count: int, grid: Grid, to: int, room: int, asymmetric: int) -> None:
    """Write ``count`` floats on a grid as unsigned bytes; what is in the ``room`` behind them may
    be written too.
    """
    inverse, _, zero = grid
    limits = (np.float32(-zero), np.float32(2 * ZERO - 1 - zero))
    if not asymmetric:
        limits = (np.float32(-LARGEST), np.float32(LARGEST))
    _write(x, count, (inverse, np.float32(zero)), limits, to, room)


@jit.kernel
def quantize(r: QuantizeRecord) -> None:
    """Quantize each image on a grid of its own, as ``hybrid.quantize_rows``, and keep its scale and
    the byte of 0.

    Threads may do the same at a time: a place is written once.
    """
    for image in range(r.images):
        x, to = r.x + image * r.x_image, r.to + image * r.to_image
        grid, kept = grid_without_zero(x, r.rows * r.length), image_grid_at(r.grids, image)
        kept.scale, kept.zero = float(grid[1]), ZERO
        for row in range(r.rows):
            place = to + row * r.to_row
            write_row(x + 4 * row * r.length, r.length, grid, place, r.length, 0)


@jit.kernel
def quantize_with_zero(r: QuantizeRecord) -> None:
    """Quantize each image on a grid of its own, as ``hybrid.quantize_rows_with_zero``, fill its
    borders with its zero point, and keep its scale and that.

    Threads may do the same at a time: a place is written once.
    """
    for image in range(r.images):
        x, to = r.x + image * r.x_image, r.to + image * r.to_image
        grid, kept = grid_with_zero(x, r.rows * r.length), image_grid_at(r.grids, image)
        kept.scale, kept.zero = float(grid[1]), grid[2]
        begin, done = to - r.border, to - r.border
        for row in range(r.rows):
            place = to + row * r.to_row
            _fill(done, place, grid[2])
            for piece in range(r.pieces):
                write_row(x, r.piece, grid, place + piece * r.to_piece, r.to_piece, 1)
                x += 4 * r.piece
            done = place + r.pieces * r.to_piece
        _fill(done, begin + r.to_image, grid[2])


@cache
def float_channels(count: int, pieces: int, rest: int, tanh: int) -> jit.Kernel:
    """Make the kernel of ``dot_tiles.channels`` with float results, followed by the hyperbolic
    tangent where ``tanh`` is 1.
    """
    places = count * pieces
    size = 4 * (2 * places + TAP_FIELDS)

    @jit.kernel
    def byte_channels_to_floats(r: ChannelsRecord) -> None:
        limits = clamp_at(r.limits, 0)
        for image in range(r.images):
            x, y = r.x + image * r.x_image, r.y + image * r.y_image
            grid = image_grid_at(r.grids, image)
            for table in range(r.table, r.table + r.tiles * size, size):
                at = pixels(places, x, table, 1)
                tile = integer_multiples(count, 4, r.zero_sums, grid.zero)
                offsets, weights = r.offsets, r.weights
                for _ in range(r.full):
                    tile = add_taps(tile, at, offsets, 4, weights)
                    offsets += 16
                    weights += 16 * LANES
                tile = add_taps(tile, at, offsets, rest, weights)
                results = scaled_in_turn(tile, grid.scale, r.scales, r.starts)
                results = jit.tanh(results) if tanh else results
                to = pixels(places, y, table + 4 * places, 4)
                write_channels_at(results, limits.low, limits.high, to, r.piece)

    return byte_channels_to_floats
