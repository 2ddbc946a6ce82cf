"""The compiled loops of convolutions with 8 bit weights.

Inputs are written as unsigned bytes into a padded copy first, so that every window is whole.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from luciole.kernels import jit
from luciole.kernels.jit import LANES
from luciole.kernels.jit.vector.dots import (
    add_centred_dots,
    add_dots,
    add_line_dots,
    add_taps,
    centres,
    integer_rows,
    less_products,
    scaled,
    turn_bytes,
    turn_first_bytes,
)
from luciole.kernels.jit.vector.fixed_point import (
    rescaled,
    scaled_exactly,
    write_bytes,
    write_channels,
)
from luciole.kernels.jit.vector.grids import integer_multiples, scaled_in_turn
from luciole.kernels.jit.vector.pixels import Places, pixels, side_by_side, write_at
from luciole.kernels.jit.vector.small_dots import add_small_dots, cleared, with_small_sums
from luciole.kernels.jit.vector.vectors import Ints
from luciole.kernels.layers.geometry.pixel_tiles import TAP_FIELDS, clamp_at
from luciole.kernels.layers.int8.byte_records import (
    ChannelsRecord,
    CopyRecord,
    WindowsRecord,
    image_grid_at,
)


@jit.separate
def turn(x: int, to: int, turned: int, count: int) -> None:
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
def copy(r: CopyRecord) -> None:
    """Copy bytes into the padded copies, some of their bits turned."""
    for image in range(r.images):
        for row in range(r.rows):
            x = r.x + image * r.x_image + row * r.length
            turn(x, r.to + image * r.to_image + row * r.to_row, r.turned, r.length)


@jit.kernel
def copy_pixels(r: CopyRecord) -> None:
    """Copy bytes where pixels stand further apart in the padded copies."""
    for image in range(r.images):
        for row in range(r.rows):
            x = r.x + image * r.x_image + row * r.length
            to = r.to + image * r.to_image + row * r.to_row
            for pixel in range(r.pixels):
                turn(x + pixel * r.pixel, to + pixel * r.to_pixel, r.turned, r.pixel)


AddStep = Callable[[Ints, Places, int, int], Ints]
"""An instruction that adds the products of four bytes of each pixel and of weights."""

AddWindows = Callable[[Ints, Places, WindowsRecord, int], Ints]


@cache
def adding_windows(add: AddStep) -> AddWindows:
    """Make the loop that adds the products of pixels' windows and weights, which lie ``step`` bytes
    apart, in steps of four bytes.
    """

    @jit.inlined
    def add_windows(tile: Ints, at: Places, r: WindowsRecord, step: int) -> Ints:
        for ky in range(r.rows):
            for run in range(r.runs):
                offset = ky * r.down + run * r.across
                weights = r.weights + ky * r.weights_down + run * r.weights_run
                for k in range(r.steps):
                    tile = add(tile, at, offset + 4 * k, weights + step * k)
        return tile

    return add_windows


_add_windows = adding_windows(add_dots)


@jit.inlined
def _add_centred_windows(tile: Ints, at: Places, r: WindowsRecord, step: int) -> Ints:
    """Add products of windows with weights less the number that is common to them."""
    for ky in range(r.rows):
        for run in range(r.runs):
            offset = ky * r.down + run * r.across
            weights = r.weights + ky * r.weights_down + run * r.weights_run
            for k in range(r.steps):
                place = weights + step * k
                tile = add_centred_dots(tile, at, offset + 4 * k, place, r.common)
    return tile


@jit.inlined
def _add_small_windows(tile: Ints, at: Places, r: WindowsRecord, step: int) -> Ints:
    """Add products of windows where sums of ``piece_steps`` steps of a run fit into int16."""
    for ky in range(r.rows):
        for run in range(r.runs):
            offset = ky * r.down + run * r.across
            weights = r.weights + ky * r.weights_down + run * r.weights_run
            for first in range(0, r.steps, r.piece_steps):
                small = cleared(tile)
                for k in range(first, min(first + r.piece_steps, r.steps)):
                    small = add_small_dots(small, at, offset + 4 * k, weights + step * k)
                tile = with_small_sums(tile, small)
    return tile


@cache
def float_windows(count: int, vectors: int, tanh: int, in_turn: int, small: int = 0) -> jit.Kernel:
    """Make the kernel of one block of float outputs: tiles of ``count`` pixels and ``vectors``
    times 16 outputs, followed by the hyperbolic tangent where ``tanh`` is 1. Sums are scaled by
    each of two factors where ``in_turn`` is 1, else by their product. ``small`` is 1 where some
    sums fit into int16.
    """
    add = _add_small_windows if small else _add_windows
    lanes, size = vectors * LANES, 4 * (2 * count + TAP_FIELDS)

    @jit.kernel
    def byte_windows_to_floats(r: WindowsRecord) -> None:
        limits = clamp_at(r.limits, 0)
        for image in range(r.images):
            x, y = r.x + image * r.x_image, r.y + image * r.y_image
            grid = image_grid_at(r.grids, image)
            for table in range(r.table, r.table + r.tiles * size, size):
                at = pixels(count, x, table, 1)
                tile = integer_multiples(count, vectors, r.zero_sums, grid.zero)
                tile = add(tile, at, r, 4 * lanes)
                to = pixels(count, y, table + 4 * count, 4)
                if in_turn:
                    results = scaled_in_turn(tile, grid.scale, r.scales, r.starts)
                else:
                    results = scaled(tile, grid.scale, r.scales, r.starts)
                results = jit.tanh(results) if tanh else results
                write_at(results, limits.low, limits.high, to, r.outputs)

    return byte_windows_to_floats


class Sums(NamedTuple):
    """How sums become results, each 0 or 1 (see ``layer.Outputs``): scaled in double precision;
    shifted up first; less what weights that do not fit into bytes have in common (2: those of each
    output); and added up as int16 for some steps.
    """

    exact: int = 0
    lifted: int = 0
    wide: int = 0
    small: int = 0


@cache
def integer_windows(count: int, vectors: int, sums: Sums) -> jit.Kernel:
    """Make the kernel of one block of 8 bit outputs; tiles as for ``float_windows``.

    Where sums are ``wide``, weights are centred on the way, or there are 16 more outputs, of which
    multiples are subtracted from the others.
    """
    exact, lifted, wide, small = sums
    on_the_way = wide > 0 and centres(wide)
    others = _add_centred_windows if on_the_way else _add_windows
    add, extra = _add_small_windows if small else others, int(wide > 0 and not on_the_way)
    read = vectors + extra
    step, size = 4 * LANES * read, 4 * (2 * count + TAP_FIELDS)

    @jit.kernel
    def byte_windows(r: WindowsRecord) -> None:
        for image in range(r.images):
            x, y = r.x + image * r.x_image, r.y + image * r.y_image
            for table in range(r.table, r.table + r.tiles * size, size):
                at = pixels(count, x, table, 1)
                raw_sums = add(integer_rows(count, read, r.starts), at, r, step)
                tile = raw_sums
                if extra:
                    tile = less_products(raw_sums, count, vectors, r.commons)
                if exact:
                    tile = scaled_exactly(tile, r.constants)
                else:
                    tile = rescaled(tile, r.constants, lifted)
                to = pixels(count, y, table + 4 * count, 1)
                write_bytes(tile, r.limits, to, r.outputs)

    return byte_windows


@cache
def integer_lines(count: int, taps: tuple[int, int, int], sums: Sums) -> jit.Kernel:
    """Make the kernel of at most 16 outputs of ``count`` pixels side by side: taps in a line,
    pixels' stride in taps, and the bytes of a tap, whose weights are filled up to a multiple of
    four with zeros.
    """
    width, stride, depth = taps
    exact, lifted, _, _ = sums
    size, weights_step = 4 * (2 + TAP_FIELDS), 4 * LANES

    @jit.kernel
    def byte_lines(r: WindowsRecord) -> None:
        for image in range(r.images):
            x, y = r.x + image * r.x_image, r.y + image * r.y_image
            for table in range(r.table, r.table + r.tiles * size, size):
                at = pixels(1, x, table, 1)
                tile = integer_rows(count, 1, r.starts)
                for ky in range(r.rows):
                    offset, weights = ky * r.down, r.weights + ky * r.weights_down
                    for _ in range((depth + 3) // 4):
                        tile = add_line_dots(tile, at, offset, weights, width, stride, depth)
                        offset += 4
                        weights += weights_step
                if exact:
                    tile = scaled_exactly(tile, r.constants)
                else:
                    tile = rescaled(tile, r.constants, lifted)
                to = side_by_side(count, pixels(1, y, table + 4, 1), r.outputs)
                write_bytes(tile, r.limits, to, r.outputs)

    return byte_lines


@cache
def channels(count: int, pieces: int, rest: int, lifted: int) -> jit.Kernel:
    """Make the kernel of 64 channels with weights for themselves: tiles of ``count`` pixels, or
    ``count`` times four of 16 channels where ``pieces`` is 4; taps four by four, and ``rest`` (1 to
    4) at last.
    """
    number = count * pieces
    size = 4 * (2 * number + TAP_FIELDS)

    @jit.kernel
    def byte_channels(r: ChannelsRecord) -> None:
        for image in range(r.images):
            x, y = r.x + image * r.x_image, r.y + image * r.y_image
            for table in range(r.table, r.table + r.tiles * size, size):
                at = pixels(number, x, table, 1)
                tile = integer_rows(count, 4, r.starts)
                offsets, weights = r.offsets, r.weights
                for _ in range(r.full):
                    tile = add_taps(tile, at, offsets, 4, weights)
                    offsets += 16
                    weights += 16 * LANES
                tile = add_taps(tile, at, offsets, rest, weights)
                to = pixels(number, y, table + 4 * number, 1)
                write_channels(rescaled(tile, r.constants, lifted), r.limits, to, r.piece)

    return byte_channels
