"""The compiled loops of convolutions of 16 bit integers: those of ``int8.dot_tiles`` in steps of
two inputs, which have four bytes as well.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from functools import cache
from typing import TypeAlias

from luciole.kernels import jit
from luciole.kernels.jit import LANES
from luciole.kernels.jit.record import Record, reader
from luciole.kernels.jit.vector.dots import add_taps, integer_rows
from luciole.kernels.jit.vector.fixed_point import rescaled, scaled_exactly
from luciole.kernels.jit.vector.pixels import Places, pixels
from luciole.kernels.jit.vector.shorts import (
    add_pairs,
    long_rows,
    longs_scaled_exactly,
    no_integers,
    rescaled_by_shifts,
    rescaled_longs,
    rescaled_once,
    with_integers,
    write_short_channels,
    write_shorts,
)
from luciole.kernels.jit.vector.vectors import Ints, Longs
from luciole.kernels.layers.geometry.pixel_tiles import TAP_FIELDS
from luciole.kernels.layers.int8.byte_records import ChannelsRecord, WindowsRecord
from luciole.kernels.layers.int8.dot_tiles import adding_windows


class Limits(Record):
    """The least and the largest result."""

    low: int
    high: int


class Scaling(IntEnum):
    """How sums become steps of the result."""

    ONCE = 0
    """Rounded once: TFLite's convolutions with a bias of 64 bits."""
    TWICE = 1
    """Rounded twice: those with a bias of 32 bits."""
    LIFTED = 2
    """Like ``TWICE``, where some sums count a step or more."""
    EXACT = 3
    """In double precision: TFLite's FULLY_CONNECTED."""
    SHIFTED = 4
    """Like ``ONCE``, where some sums count a step or more."""
    LONG = 5
    """Like ``ONCE``, with sums of int64."""
    LONG_EXACT = 6
    """Like ``EXACT``, with sums of int64."""


LONGS = (Scaling.LONG, Scaling.LONG_EXACT)

_limits_at = reader(Limits)
_add_windows = adding_windows(add_pairs)


@jit.inlined
def _rescaled_twice(tile: Ints, constants: int) -> Ints:
    return rescaled(tile, constants, 0)


@jit.inlined
def _rescaled_lifted(tile: Ints, constants: int) -> Ints:
    return rescaled(tile, constants, 1)


_RESCALE: dict[Scaling, Callable[..., Ints]] = {
    Scaling.ONCE: rescaled_once,
    Scaling.TWICE: _rescaled_twice,
    Scaling.LIFTED: _rescaled_lifted,
    Scaling.EXACT: scaled_exactly,
    Scaling.SHIFTED: rescaled_by_shifts,
    Scaling.LONG: rescaled_longs,
    Scaling.LONG_EXACT: longs_scaled_exactly,
}
"""Functions that scale a tile of sums to steps of the result, with the constants at an address."""


Sums: TypeAlias = Callable[[WindowsRecord, Places], Ints | Longs]
"""Adds up the products of the pixels of a tile, whose inputs begin at places."""


@cache
def windows(count: int, vectors: int, scaling: Scaling) -> jit.Kernel:
    """Make the kernel of one block of outputs: tiles of ``count`` pixels and ``vectors`` times 16
    outputs.
    """
    size = 4 * (2 * count + TAP_FIELDS)
    sums = (_long_sums if scaling in LONGS else _sums)(count, vectors)
    rescale = _RESCALE[scaling]

    @jit.kernel
    def short_windows(r: WindowsRecord) -> None:
        limits = _limits_at(r.limits, 0)
        for image in range(r.images):
            x, y = r.x + image * r.x_image, r.y + image * r.y_image
            for table in range(r.table, r.table + r.tiles * size, size):
                steps = rescale(sums(r, pixels(count, x, table, 1)), r.constants)
                to = pixels(count, y, table + 4 * count, 2)
                write_shorts(steps, limits.low, limits.high, to, r.outputs)

    return short_windows


@cache
def _sums(count: int, vectors: int) -> Sums:
    step = 4 * LANES * vectors

    @jit.inlined
    def sums(r: WindowsRecord, at: Places) -> Ints:
        return _add_windows(integer_rows(count, vectors, r.starts), at, r, step)

    return sums


@cache
def _long_sums(count: int, vectors: int) -> Sums:
    """Make the sums that may leave int32: those of some steps of a run do not, and are added up as
    int64.
    """
    step = 4 * LANES * vectors

    @jit.inlined
    def long_sums(r: WindowsRecord, at: Places) -> Longs:
        longs = long_rows(count, vectors, r.starts)
        pieces = (r.steps + r.piece_steps - 1) // r.piece_steps
        for piece in range(r.rows * r.runs * pieces):
            run, first = piece // pieces, piece % pieces * r.piece_steps
            down, across = run // r.runs, run % r.runs
            offset = down * r.down + across * r.across
            weights = r.weights + down * r.weights_down + across * r.weights_run
            tile = no_integers(count, vectors)
            for k in range(first, min(first + r.piece_steps, r.steps)):
                tile = add_pairs(tile, at, offset + 4 * k, weights + step * k)
            longs = with_integers(longs, tile)
        return longs

    return long_sums


@cache
def channels(count: int, pieces: int, rest: int, scaling: Scaling) -> jit.Kernel:
    """Make the kernel of 32 channels with weights for themselves: tiles of ``count`` pixels, or
    ``count`` times four of 8 channels where ``pieces`` is 4; taps two by two, and ``rest`` (1 or 2)
    at last.
    """
    number = count * pieces
    size = 4 * (2 * number + TAP_FIELDS)
    rescale = _RESCALE[scaling]

    @jit.kernel
    def short_channels(r: ChannelsRecord) -> None:
        limits = _limits_at(r.limits, 0)
        for image in range(r.images):
            x, y = r.x + image * r.x_image, r.y + image * r.y_image
            for table in range(r.table, r.table + r.tiles * size, size):
                at = pixels(number, x, table, 1)
                tile = integer_rows(count, 2, r.starts)
                offsets, weights = r.offsets, r.weights
                for _ in range(r.full):
                    tile = add_taps(tile, at, offsets, 2, weights)
                    offsets += 8
                    weights += 8 * LANES
                tile = add_taps(tile, at, offsets, rest, weights)
                steps = rescale(tile, r.constants)
                to = pixels(number, y, table + 4 * number, 2)
                write_short_channels(steps, limits.low, limits.high, to, r.piece)

    return short_channels
