"""The compiled loops of convolutions with 8 bit weights.

Inputs are written as unsigned bytes into a padded copy first, so that every window is whole.
Records are written, and their fields named, by ``byte_layer``.
"""

from __future__ import annotations

from functools import cache

from luciole.kernels import jit
from luciole.kernels.jit import LANES, Record, floats, words
from luciole.kernels.jit.dots import (
    add_dots,
    add_line_dots,
    add_taps,
    integer_rows,
    scaled,
    turn_bytes,
    turn_first_bytes,
)
from luciole.kernels.jit.fixed_point import rescaled, scaled_exactly, write_bytes, write_channels
from luciole.kernels.jit.grids import integer_multiples, scaled_in_turn
from luciole.kernels.jit.pixels import pixels, side_by_side, write_at
from luciole.kernels.layers.pixel_tiles import TAP_FIELDS


@jit.inline
def _turn(x: int, to: int, turned: int, count: int) -> None:
    """Copy bytes, some of their bits turned."""
    end = x + count
    while end - x >= 4 * LANES:
        turn_bytes(x, to, turned, 4)
        x += 4 * LANES
        to += 4 * LANES
    while end - x >= LANES:
        turn_bytes(x, to, turned, 1)
        x += LANES
        to += LANES
    if x < end:
        turn_first_bytes(x, to, turned, end - x)


@jit.kernel
def copy(r: Record) -> None:
    """Copy bytes into the padded copies, their bits turned where those of ``r[8]`` are set."""
    for image in range(r[2]):
        for row in range(r[5]):
            x, to = r[0] + image * r[3] + row * r[6], r[1] + image * r[4] + row * r[7]
            _turn(x, to, r[8], r[6])


@jit.kernel
def copy_pixels(r: Record) -> None:
    """The same where pixels stand further apart in the copies: rows are ``r[9]`` pixels, ``r[10]``
    bytes of them each, ``r[11]`` bytes from one to the next.
    """
    for image in range(r[2]):
        for row in range(r[5]):
            x, to = r[0] + image * r[3] + row * r[6], r[1] + image * r[4] + row * r[7]
            for pixel in range(r[9]):
                _turn(x + pixel * r[10], to + pixel * r[11], r[8], r[10])


@cache
def float_windows(count: int, vectors: int, tanh: int, in_turn: int) -> jit.Kernel:
    """One block of float outputs: tiles of ``count`` pixels and ``vectors`` times 16 outputs, bent
    by the hyperbolic tangent where ``tanh`` is 1. Sums are scaled by each of two factors where
    ``in_turn`` is 1, else by their product.
    """
    lanes, size = vectors * LANES, 4 * (2 * count + TAP_FIELDS)

    @jit.kernel
    def byte_windows_to_floats(r: Record) -> None:
        limits = floats(r[7])
        for image in range(r[2]):
            x, y = r[0] + image * r[3], r[1] + image * r[4]
            factor, zero = floats(r[16])[2 * image], words(r[16])[2 * image + 1]
            for table in range(r[5], r[5] + r[6] * size, size):
                at = pixels(count, x, table, 1)
                tile = integer_multiples(count, vectors, r[18], zero)
                for ky in range(r[14]):
                    for run in range(r[12]):
                        offset = ky * r[8] + run * r[9]
                        weights = r[17] + ky * r[10] + run * r[11]
                        for k in range(r[13]):
                            tile = add_dots(tile, at, offset + 4 * k, weights + 4 * lanes * k)
                to = pixels(count, y, table + 4 * count, 4)
                if in_turn:
                    results = scaled_in_turn(tile, factor, r[19], r[20])
                else:
                    results = scaled(tile, factor, r[19], r[20])
                results = jit.tanh(results) if tanh else results
                write_at(results, limits[0], limits[1], to, r[15])

    return byte_windows_to_floats


@cache
def integer_windows(count: int, vectors: int, exact: int) -> jit.Kernel:
    """One block of 8 bit outputs, likewise, scaled in double precision where ``exact`` is 1."""
    lanes, size = vectors * LANES, 4 * (2 * count + TAP_FIELDS)

    @jit.kernel
    def byte_windows(r: Record) -> None:
        for image in range(r[2]):
            x, y = r[0] + image * r[3], r[1] + image * r[4]
            for table in range(r[5], r[5] + r[6] * size, size):
                at = pixels(count, x, table, 1)
                tile = integer_rows(count, vectors, r[18])
                for ky in range(r[14]):
                    for run in range(r[12]):
                        offset = ky * r[8] + run * r[9]
                        weights = r[17] + ky * r[10] + run * r[11]
                        for k in range(r[13]):
                            tile = add_dots(tile, at, offset + 4 * k, weights + 4 * lanes * k)
                tile = scaled_exactly(tile, r[19]) if exact else rescaled(tile, r[19])
                to = pixels(count, y, table + 4 * count, 1)
                write_bytes(tile, r[7], to, r[15])

    return byte_windows


@cache
def integer_lines(count: int, taps: tuple[int, int, int], exact: int) -> jit.Kernel:
    """At most 16 outputs of ``count`` pixels side by side: taps in a line, pixels' stride in taps,
    and the bytes of a tap, whose weights are filled up to a multiple of four with zeros.
    """
    width, stride, depth = taps
    size, weights_step = 4 * (2 + TAP_FIELDS), 4 * LANES

    @jit.kernel
    def byte_lines(r: Record) -> None:
        for image in range(r[2]):
            x, y = r[0] + image * r[3], r[1] + image * r[4]
            for table in range(r[5], r[5] + r[6] * size, size):
                at = pixels(1, x, table, 1)
                tile = integer_rows(count, 1, r[18])
                for ky in range(r[14]):
                    offset, weights = ky * r[8], r[17] + ky * r[10]
                    for _ in range((depth + 3) // 4):
                        tile = add_line_dots(tile, at, offset, weights, width, stride, depth)
                        offset += 4
                        weights += weights_step
                tile = scaled_exactly(tile, r[19]) if exact else rescaled(tile, r[19])
                to = side_by_side(count, pixels(1, y, table + 4, 1), r[15])
                write_bytes(tile, r[7], to, r[15])

    return byte_lines


@cache
def channels(count: int, pieces: int, rest: int) -> jit.Kernel:
    """64 channels with weights for themselves: tiles of ``count`` pixels, or ``count`` times four
    of 16 channels where ``pieces`` is 4; taps four by four, and ``rest`` (1 to 4) at last.
    """
    number = count * pieces
    size = 4 * (2 * number + TAP_FIELDS)

    @jit.kernel
    def byte_channels(r: Record) -> None:
        for image in range(r[2]):
            x, y = r[0] + image * r[3], r[1] + image * r[4]
            for table in range(r[5], r[5] + r[6] * size, size):
                at = pixels(number, x, table, 1)
                tile = integer_rows(count, 4, r[12])
                offsets, weights = r[8], r[11]
                for _ in range(r[9]):
                    tile = add_taps(tile, at, offsets, 4, weights)
                    offsets += 16
                    weights += 16 * LANES
                tile = add_taps(tile, at, offsets, rest, weights)
                to = pixels(number, y, table + 4 * number, 1)
                write_channels(rescaled(tile, r[13]), r[7], to, r[10])

    return byte_channels
