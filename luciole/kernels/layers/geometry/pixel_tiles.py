"""A convolution's output pixels in tiles that a kernel computes at once, as tables.

Near a border some kernel positions (taps) lie outside the image. The pixels of a tile have the same
taps inside, which make a rectangle, and need not be neighbours. A tile that is not full is filled
up with a pixel that it has already: computed twice, the same result is written twice.

Nothing is copied as by im2col. A table is less than an indirection buffer (Dukhan, The Indirect
Convolution Algorithm, 2019): it has an address for each pixel, not for each of its taps, because
taps inside of an image lie at the same distances from each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from luciole.kernels.core.memory import NEVER, Memory, Moves, among
from luciole.kernels.jit.record import Record, reader
from luciole.kernels.layers.geometry.spans import Axis

Places = NDArray[np.int64]
Table = NDArray[np.int32]

TAP_FIELDS = 4
"""Fields behind a tile's pixels: first tap inside, rows and columns of taps, and a 0."""

FIRST, DOWN, ACROSS = range(3)
"""The places of these among them."""

MAX_PLACE = 2**31 - 1
"""Tables hold int32: places in units of 4 bytes."""


class Clamp(Record):
    """The limits at which float results are cut off."""

    low: float
    high: float


clamp_at = reader(Clamp)


_REMEMBERED, _MOST_PIXELS = 128, 1 << 14
"""Cases and tables that are remembered, of images of so many pixels at the most: those of a network
are asked for in each of its plans. All of them together take less than 100 MB.
"""


@dataclass(frozen=True, eq=False)
class Case:
    """Output pixels that have the same taps inside, in the image's order, each with the input pixel
    under its first tap inside.
    """

    taps: tuple[int, int, int]
    x: Places
    y: Places

    @property
    def products(self) -> int:
        """Number of taps inside."""
        return self.taps[1] * self.taps[2]


Pairs = tuple[tuple[Case, Case], ...]


def cases(rows: Axis, columns: Axis) -> tuple[Case, ...]:
    """Group every output pixel of an image by its taps inside."""
    return tuple(case for case, _ in joined(rows, columns, 1))


def joined(rows: Axis, columns: Axis, neighbours: int) -> Pairs:
    """Group every output pixel of an image by its taps inside: first those that begin
    ``neighbours`` pixels in a row, then those on their own where there are fewer alike.

    Places at the end of a row may overlap. Windows must move by 1 from column to column.
    """
    few = rows.outputs * columns.outputs <= _MOST_PIXELS
    return (_known_pairs if few else _pairs)(rows, columns, neighbours)


def _pairs(rows: Axis, columns: Axis, neighbours: int) -> Pairs:
    return tuple(_paired(rows, columns, neighbours))


_known_pairs = lru_cache(_REMEMBERED)(_pairs)


def _paired(rows: Axis, columns: Axis, neighbours: int) -> Iterator[tuple[Case, Case]]:
    alike = list(_alike(columns))
    for top, down, r in _alike(rows):
        for left, across, c in alike:
            taps = (top * columns.kernel + left, down, across)
            first = np.minimum(c[::neighbours], c[-1] - neighbours + 1)
            cut = (first, c[:0]) if len(c) >= neighbours else (c[:0], c)
            whole, alone = (Case(taps, *_places(rows, columns, r, some)) for some in cut)
            yield whole, alone


def _alike(axis: Axis) -> Iterator[tuple[int, int, Places]]:
    """Group output positions with the same taps inside: first tap, number of taps, and the
    positions.
    """
    kinds = axis.first * (axis.kernel + 1) + axis.count
    for kind in np.flatnonzero(np.bincount(kinds)).tolist():
        first, count = divmod(kind, axis.kernel + 1)
        yield first, count, np.flatnonzero(kinds == kind)


def _places(rows: Axis, columns: Axis, r: Places, c: Places) -> tuple[Places, Places]:
    x = rows.start[r][:, None] * columns.size + columns.start[c]
    y = rows.among_all(r)[:, None] * columns.length + columns.among_all(c)
    return x.reshape(-1), y.reshape(-1)


def tables(
    windows: Sequence[Case], pixels: int, steps: tuple[int, int], few: int = 0, small: int = 1
) -> tuple[Table, Table]:
    """Cut cases into tiles of ``pixels`` pixels and, for up to ``few`` that are left over, of
    ``small`` pixels.

    A row is [places of first input pixels, places of output pixels, TAP_FIELDS]; ``steps`` are the
    distances of two input and of two output pixels.
    """
    few_pixels = sum(len(case.y) for case in windows) <= _MOST_PIXELS
    return (_known_cut if few_pixels else _cut)(tuple(windows), pixels, steps, few, small)


def _cut(
    windows: tuple[Case, ...], pixels: int, steps: tuple[int, int], few: int, small: int
) -> tuple[Table, Table]:
    whole, rest = [_empty(pixels)], [_empty(small)]
    for case in windows:
        left = len(case.y) % pixels
        cut = len(case.y) - left if left <= few else len(case.y)
        whole.append(_table(case, slice(0, cut), pixels, steps))
        rest.append(_table(case, slice(cut, None), small, steps))
    both = np.concatenate(whole), np.concatenate(rest)
    for table in both:
        table.flags.writeable = False  # it may be remembered
    return both


_known_cut = lru_cache(_REMEMBERED)(_cut)


def kept(table: Table, pixels: int, memory: Memory) -> int:
    """Keep a table for a kernel whose tiles have ``pixels`` pixels, and return its address."""
    return memory.keep(table, len(table), 2 * pixels + TAP_FIELDS)


def input_moves(table: Table, unit: int, steps: tuple[int, int]) -> Moves:
    """Return the moves of an input's address from tile to tile, over all taps inside. Places are
    counted in units of ``unit`` bytes; ``steps`` are the bytes from tap to tap, down and across,
    none of them backwards.
    """
    some = table[(table[:, -3] > 0) & (table[:, -2] > 0)].astype(np.int64)
    if not len(some):
        return NEVER
    x = unit * some[:, : _pixels(table)]
    last = (some[:, -3] - 1) * steps[0] + (some[:, -2] - 1) * steps[1]
    return Moves(int(x.min()), int((x.max(1) + last).max()))


def result_moves(table: Table, unit: int) -> Moves:
    """Return the moves of a result's address from tile to tile, in the same units."""
    pixels = _pixels(table)
    return among(unit * table[:, pixels : 2 * pixels].astype(np.int64))


def _pixels(table: Table) -> int:
    return (int(table.shape[1]) - TAP_FIELDS) // 2


def _empty(pixels: int) -> Table:
    return np.zeros((0, 2 * pixels + TAP_FIELDS), np.int32)


def _table(case: Case, some: slice, pixels: int, steps: tuple[int, int]) -> Table:
    x, y = case.x[some] * steps[0], case.y[some] * steps[1]
    missing = -len(x) % pixels
    filled = [np.append(a, np.repeat(a[-1:], missing)).reshape(-1, pixels) for a in (x, y)]
    taps = np.tile([*case.taps, 0], (len(filled[0]), 1))
    return np.concatenate([*filled, taps], axis=1).astype(np.int32)
