"""A convolution's output pixels in spans that can be computed alike.

Near a border some kernel positions (taps) lie outside the image. Pixels whose taps inside are the
same make rectangles; a span is a line of such pixels, cut into tiles that a kernel takes at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from luciole.ir.rules import padding_before, window
from luciole.kernels.jit.record import Record
from luciole.schema.enums import Padding

Integers = NDArray[np.int64]


class Span(Record):
    """A line of tiles: first input pixel, first tap, first output pixel; how many tiles; how far
    input and output move from tile to tile and from pixel to pixel within one; rows and columns of
    taps inside; and the border case (row run times column runs + column run).
    """

    x: int
    tap: int
    y: int
    tiles: int
    x_tile: int
    y_tile: int
    x_pixel: int
    y_pixel: int
    rows: int
    columns: int
    case: int


TILE_COST = 0.7
"""Cost of a tile besides its pixels, in pixels: loops and conversions."""


class Inside(Record):
    """The inputs of a window along one axis that lie inside of the image."""

    first: int
    count: int


@dataclass(frozen=True, eq=False)
class Axis:
    """One axis of a sliding window, by output position: which taps lie inside, and where.

    Axes of equal windows are one object, so that what is computed of them can be remembered.

    Taps ``first`` to ``first + count - 1`` are inside; the first of them meets input ``start``.
    Where the axis is of a part of a result that is ``whole`` long, ``places`` are those of its own
    positions.
    """

    size: int
    kernel: int
    stride: int
    dilation: int
    first: Integers
    count: Integers
    start: Integers
    places: Integers | None = None
    whole: int = 0

    @classmethod
    @lru_cache(1024)
    def of(cls, size: int, kernel: int, stride: int, dilation: int, padding: Padding) -> Axis:
        """Make the axis of a window over ``size`` inputs. Raises ShapeError where it does not
        fit.
        """
        out = window(size, kernel, stride, dilation, padding) or 0
        before = padding_before(size, kernel, stride, dilation, padding)
        origin = np.arange(out, dtype=np.int64) * stride - before
        first = np.clip(-(origin // dilation), 0, kernel)
        count = np.clip(-((origin - size) // dilation), 0, kernel) - first
        count = np.maximum(count, 0)
        start = np.where(count > 0, origin + first * dilation, 0)
        return cls(size, kernel, stride, dilation, first, count, start)

    @property
    def outputs(self) -> int:
        """Number of output positions."""
        return len(self.first)

    @property
    def length(self) -> int:
        """Number of positions of the whole result."""
        return self.outputs if self.places is None else self.whole

    def among_all(self, positions: Integers) -> Integers:
        """Return where some of the axis's own positions are in the whole result."""
        return positions if self.places is None else self.places[positions]

    @property
    def inside(self) -> Integers:
        """First input and number of taps inside, [outputs, 2]."""
        return np.stack([self.start, self.count], 1)

    @property
    def runs(self) -> list[range]:
        """Neighbouring output positions with the same taps inside."""
        changes = (np.diff(self.first) != 0) | (np.diff(self.count) != 0)
        ends = [*(np.flatnonzero(changes) + 1).tolist(), self.outputs]
        return [range(a, b) for a, b in pairwise([0, *ends]) if a < b]

    @property
    def met(self) -> range:
        """The inputs from the first that a tap meets to the last."""
        some, last = self.count > 0, self.start + (self.count - 1) * self.dilation
        if not some.any():
            return range(0)
        return range(int(self.start[some].min()), int(last[some].max()) + 1)

    def part(self, begin: int, end: int) -> Axis:
        """Keep the inputs and some of the output positions."""
        own = slice(begin, end)
        return replace(self, first=self.first[own], count=self.count[own], start=self.start[own])

    @property
    def taps(self) -> list[slice]:
        """The taps inside, one slice for each run."""
        firsts = [run[0] for run in self.runs]
        return [slice(int(self.first[r]), int(self.first[r] + self.count[r])) for r in firsts]


@dataclass(frozen=True)
class Spans:
    """Lines of tiles of ``pixels`` pixels, and pixels that are left over, one by one."""

    pixels: int
    tiles: list[Span]
    single: list[Span]


def spans(rows: Axis, columns: Axis, most: int, least: int = 1) -> Spans:
    """Cover every output pixel once, in tiles of the number of pixels (from ``least`` to ``most``)
    that fits best.
    """
    cut = [_cut(rows, columns, pixels) for pixels in range(least, most + 1)]
    return min(cut, key=_cost)


def _cost(spans: Spans) -> float:
    tiles, single = (sum(span.tiles for span in s) for s in (spans.tiles, spans.single))
    return tiles * (spans.pixels + TILE_COST) + single * (1 + TILE_COST)


def _cut(rows: Axis, columns: Axis, pixels: int) -> Spans:
    tiles: list[Span] = []
    single: list[Span] = []
    for case, (down, across) in enumerate((r, c) for r in rows.runs for c in columns.runs):
        left_over = (len(down) * (len(across) % pixels), len(across) * (len(down) % pixels))
        turned = left_over[1] < left_over[0]
        for line in _lines(rows, columns, down, across, turned):
            whole, rest = divmod(line.tiles, pixels)
            alone = line.replace(case=case)
            dx, dy = line.x_pixel, line.y_pixel
            if whole:
                tiles.append(alone.replace(tiles=whole, x_tile=pixels * dx, y_tile=pixels * dy))
            if rest:
                done = whole * pixels
                x, y = line.x + done * dx, line.y + done * dy
                single.append(alone.replace(tiles=rest, x=x, y=y))
    return Spans(pixels, tiles, single)


def _lines(rows: Axis, columns: Axis, down: range, across: range, turned: bool) -> Iterator[Span]:
    """Yield the lines of one rectangle, along rows or (``turned``) along columns, as tiles of a
    pixel.
    """
    width, out_width = columns.size, columns.outputs
    if turned:
        starts, length = [(down[0], c) for c in across], len(down)
        steps = (rows.stride * width, out_width)
    else:
        starts, length = [(r, across[0]) for r in down], len(across)
        steps = (columns.stride, 1)
    for r, c in starts:
        yield Span(
            x=int(rows.start[r] * width + columns.start[c]),
            tap=int(rows.first[r] * columns.kernel + columns.first[c]),
            y=r * out_width + c,
            tiles=length,
            x_tile=steps[0],
            y_tile=steps[1],
            x_pixel=steps[0],
            y_pixel=steps[1],
            rows=int(rows.count[r]),
            columns=int(columns.count[c]),
            case=0,
        )
