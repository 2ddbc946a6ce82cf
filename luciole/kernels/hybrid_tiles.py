"""The compiled loops of layers with 8 bit weights whose inputs are quantized with a zero point.

Records are written, and their fields named, by ``hybrid_layer``.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from luciole.kernels import jit
from luciole.kernels.dot_tiles import INFINITY
from luciole.kernels.jit import LANES, Record, floats, words
from luciole.kernels.jit.bytes import in_lanes, larger, store_all_bytes, store_bytes
from luciole.kernels.jit.dots import add_taps, highest
from luciole.kernels.jit.elementwise import number
from luciole.kernels.jit.grids import (
    float_bits,
    grid_bytes,
    integer_multiples,
    scaled_in_turn,
    write_channels_at,
)
from luciole.kernels.jit.pixels import pixels
from luciole.kernels.pixel_tiles import TAP_FIELDS

SIGN = 0x80000000
"""The bit of a float that says that it is negative."""


@jit.inline
def _largest(x: int, count: int, turned: int) -> int:
    """The bit pattern of the largest of ``count`` floats, some of their bits turned; at least 0."""
    found, whole = in_lanes(0), count & -LANES
    for k in range(0, whole, LANES):
        found = larger(found, float_bits(x + 4 * k, LANES, turned))
    result: int = highest(larger(found, float_bits(x + 4 * whole, count - whole, turned)))
    return result


@jit.inline
def _zero_point(least: float, most: float) -> int:
    """What ``hybrid._zero_points`` gives."""
    of_least, of_most = -128 - least, 127 - most
    chosen = of_least if 128 - least < 127 + most else of_most
    rounded = int(abs(chosen) + 0.5)
    return max(-128, min(127, rounded if chosen >= 0 else -rounded))


@jit.inline
def _fill(start: int, end: int, byte: int) -> None:
    """Write a byte to every place from ``start`` to before ``end``."""
    while end - start >= LANES:
        store_all_bytes(in_lanes(byte), 0, 255, start)
        start += LANES
    if start < end:
        store_bytes(in_lanes(byte), 0, 255, start, end - start)


@jit.inline
def _write(x: int, to: int, count: int, inverse: float, point: float) -> None:
    """Quantize ``count`` floats."""
    whole = count & -LANES
    for k in range(0, whole, LANES):
        store_all_bytes(grid_bytes(x + 4 * k, inverse, point, LANES), 0, 255, to + k)
    if whole < count:
        rest = grid_bytes(x + 4 * whole, inverse, point, count - whole)
        store_bytes(rest, 0, 255, to + whole, count - whole)


@jit.kernel
def quantize_with_zero(r: Record) -> None:
    """Quantize each image on a grid of its own, as ``hybrid.quantize_rows_with_zero``, fill its
    borders with its zero point, and keep its scale and that.

    Threads may do the same at a time: a place is written once.
    """
    for image in range(r[2]):
        x, to = r[0] + image * r[3], r[1] + image * r[4]
        up, down = _largest(x, r[5] * r[6], 0), _largest(x, r[5] * r[6], SIGN)
        finite = max(up, down) < INFINITY
        most = np.float64(number(up)) if finite else np.float64(0)
        least = -np.float64(number(down)) if finite else np.float64(0)
        scale = (most - least) / 255.0 if least < most else 1.0
        point = _zero_point(least / scale, most / scale)
        single = np.float32(scale) if finite else np.float32(np.nan)
        inverse = np.float32(1.0 / np.float64(single))
        if not (least < most and inverse < np.inf):
            inverse = np.float32(0)
        floats(r[8])[2 * image] = single
        words(r[8])[2 * image + 1] = np.uint32(point + 128)
        begin, done = to - r[9], to - r[9]
        for row in range(r[5]):
            place = to + row * r[7]
            _fill(done, place, point + 128)
            for piece in range(r[10]):
                _write(x, place + piece * r[12], r[11], inverse, np.float32(point))
                x += 4 * r[11]
            done = place + r[10] * r[12]
        _fill(done, begin + r[4], point + 128)


@cache
def float_channels(count: int, pieces: int, rest: int, tanh: int) -> jit.Kernel:
    """``dot_tiles.channels`` with float results, bent by the hyperbolic tangent where ``tanh`` is
    1.
    """
    places = count * pieces
    size = 4 * (2 * places + TAP_FIELDS)

    @jit.kernel
    def byte_channels_to_floats(r: Record) -> None:
        limits = floats(r[7])
        for image in range(r[2]):
            x, y = r[0] + image * r[3], r[1] + image * r[4]
            factor, zero = floats(r[11])[2 * image], words(r[11])[2 * image + 1]
            for table in range(r[5], r[5] + r[6] * size, size):
                at = pixels(places, x, table, 1)
                tile = integer_multiples(count, 4, r[13], zero)
                offsets, weights = r[8], r[12]
                for _ in range(r[9]):
                    tile = add_taps(tile, at, offsets, 4, weights)
                    offsets += 16
                    weights += 16 * LANES
                tile = add_taps(tile, at, offsets, rest, weights)
                results = scaled_in_turn(tile, factor, r[14], r[15])
                results = jit.tanh(results) if tanh else results
                to = pixels(places, y, table + 4 * places, 4)
                write_channels_at(results, limits[0], limits[1], to, r[10])

    return byte_channels_to_floats
