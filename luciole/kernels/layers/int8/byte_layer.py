"""Build compiled convolutions with 8 bit weights: inputs are written as unsigned bytes into a
padded copy first, whose windows all are whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import NamedTuple, Protocol

import numpy as np

from luciole.ir import Array
from luciole.ir.rules import padding_before, window
from luciole.kernels.core.contract import NativeStep
from luciole.kernels.core.memory import Memory, Moves, reach, turns
from luciole.kernels.jit import LANES, Kernel
from luciole.kernels.jit.processor import vector_registers
from luciole.kernels.jit.vector.dots import PAIRED_VECTORS, PAIRS, centres
from luciole.kernels.jit.vector.small_dots import MOST_SUM, adds_small_dots
from luciole.kernels.layers.floats.layer import by_lanes
from luciole.kernels.layers.floats.tiling import SMALL, Tiling
from luciole.kernels.layers.geometry.pixel_tiles import (
    Case,
    Table,
    cases,
    joined,
    kept,
    result_moves,
    tables,
)
from luciole.kernels.layers.geometry.sequence import First, Part, in_sequence
from luciole.kernels.layers.geometry.spans import Axis
from luciole.kernels.layers.int8 import dot_tiles
from luciole.kernels.layers.int8.byte_records import (
    READ_BY_SOME,
    ByteRecord,
    CopyRecord,
    Lines,
    WindowsRecord,
)
from luciole.schema.enums import Padding

FOUR = 4
"""Products of one step: weights of a run are filled up to a multiple with zeros."""

LEAST_STEPS = 4
"""Steps of a piece of a run, where there are more, that are worth another addition."""

MOST_ALONE = 8
"""Vectors of outputs in the tile of a pixel that has no others."""

ZERO = 128
"""The byte that stands for 0 where integers are signed."""


@dataclass(frozen=True)
class Side:
    """One axis of an image: its extent, the padding in front, and windows over all of it padded."""

    size: int
    before: int
    padded: Axis

    @classmethod
    def of(cls, size: int, kernel: int, stride: int, dilation: int, padding: Padding) -> Side:
        """Lay out the axis of a window over ``size`` inputs. Raises ShapeError where it does not
        fit.
        """
        outputs = window(size, kernel, stride, dilation, padding) or 0
        before = padding_before(size, kernel, stride, dilation, padding)
        needed = (outputs - 1) * stride + (kernel - 1) * dilation + 1
        extent = max(needed, before + size)
        return cls(size, before, Axis.of(extent, kernel, stride, dilation, Padding.VALID))

    def some(self, outputs: range) -> Side:
        """Keep some of the output positions."""
        axis, own = self.padded, slice(outputs.start, outputs.stop)
        kept = replace(
            axis,
            first=axis.first[own],
            count=axis.count[own],
            start=axis.start[own],
            places=np.arange(outputs.start, outputs.stop),
            whole=axis.outputs,
        )
        return replace(self, padded=kept)


class Windows(Protocol):
    """Common attributes of operators with windows of height and width."""

    padding: Padding
    stride_h: int
    stride_w: int
    dilation_h_factor: int
    dilation_w_factor: int


def sides(op: Windows, x: Array, filter: Array) -> tuple[Side, Side]:
    """Return the rows and columns of NHWC images under a filter [.., height, width, ..]."""
    (h, w), (kh, kw) = x.shape[1:3], filter.shape[1:3]
    rows = Side.of(h, kh, op.stride_h, op.dilation_h_factor, op.padding)
    return rows, Side.of(w, kw, op.stride_w, op.dilation_w_factor, op.padding)


@dataclass(frozen=True)
class Line:
    """Tiles of pixels side by side, of at most 16 outputs, and the kernel for them."""

    pixels: int
    kernel: Kernel


class Tiles(NamedTuple):
    """A kernel and the table of tiles that it runs on: its address, how many there are, the bytes
    of one, and what they add to a result's address.
    """

    kernel: Kernel
    place: int
    number: int
    row: int
    results: Moves


class Work(NamedTuple):
    """Parts of a step, and the cycles that they take for some."""

    parts: list[Part]
    cycles: float


Blocks = Callable[[int], dict[str, Array]]
"""Function that returns, for the outputs in a block, the operands of a kernel by the names of its
record's fields.
"""


@dataclass
class ByteLayer:
    """Builder of one layer's step. ``zero`` is the byte that stands for 0 in the copies."""

    rows: Side
    columns: Side
    x: Array
    y: Array
    zero: int
    memory: Memory = field(default_factory=Memory)
    piece_steps: int = field(default=0, init=False)
    """Steps of a run whose sums kernels may add up in fewer bits, where they do."""
    largest: int = field(default=255, init=False)
    """The largest byte that an input may be."""
    tiling: Tiling | None = field(default=None, init=False)
    """Tiles of all windows, where these are computed in several parts."""

    def __post_init__(self) -> None:
        """Make room for the padded copies."""
        self.row = self.columns.padded.size * self.pixel
        self.image = self.rows.padded.size * self.row
        copies = np.full(len(self.x) * self.image + FOUR, self.zero % 256, np.uint8)
        self.copies = self.memory.keep(copies, len(copies))

    @property
    def pixel(self) -> int:
        """Bytes from one pixel to the next in the copies."""
        return int(self.x.shape[-1])

    def copying(self, turned: int = 0) -> First:
        """Copy inputs as they are, or with some bits of each byte flipped."""
        _, _, width, channels = self.x.shape
        record = CopyRecord(
            **self.lines().fields(),
            turned=turned,
            pixels=width,
            pixel=channels,
            to_pixel=self.pixel,
        )
        kernel = dot_tiles.copy if self.pixel == channels else dot_tiles.copy_pixels
        return First(kernel.address, record)

    def lines(self) -> Lines:
        """Describe how images are written into the copies."""
        images, height, width, channels = self.x.shape
        rows, length = height, width * channels
        if self.row == length:  # nothing stands between rows
            rows, length = 1, height * length
        first = self.rows.before * self.row + self.columns.before * self.pixel
        image, line = self.x.nbytes // images, length * self.x.itemsize
        return Lines(
            x=reach(self.x, line, turns(images, image), turns(rows, line)),
            to=self.copies + first,
            images=images,
            x_image=image,
            to_image=self.image,
            rows=rows,
            length=length,
            to_row=self.row,
        )

    def windows(
        self,
        weights: Array,
        kernel: Callable[[int, int], Kernel],
        blocks: Blocks,
        limits: int,
        grids: int = 0,
        line: Line | None = None,
        common: Array | None = None,
    ) -> Work:
        """Describe windows over groups of channels by the kernel for tiles of some pixels and
        vectors.

        ``weights`` are [groups, o, kernel height, kernel width, depth]. ``blocks`` gives, for the
        outputs in a block, arrays [groups, blocks, ...] that the kernel reads for each;
        ``limits`` and ``grids`` are addresses that it reads for all. Where there is a ``line``,
        its kernel does all pixels. Where numbers are ``common`` to the weights of all outputs, or
        of each, kernels subtract their products, for which each block has 16 more outputs unless
        they do it on the way.
        """
        groups, outputs, _, _, depth = weights.shape
        windows = cases(self.rows.padded, self.columns.padded)
        tiling = self.tiling or tiling_of(windows, outputs, depth)
        tiling = tiling if line is None else Tiling(line.pixels, 1)
        on_the_way = 0 if common is None or not centres(common.size) else int(common.item())
        extra = LANES if common is not None and not on_the_way else 0
        runs = self.runs(weights, line, on_the_way)
        tiling = tiling.with_more() if extra else tiling
        kinds = self._tiles(windows, tiling, groups * outputs, kernel, line)
        walk, lanes, parts = self._walk(runs, tiling.lanes + extra), tiling.lanes, []
        read = {"weights": np.moveaxis(by_lanes(runs, lanes), -2, -1), **blocks(lanes)}
        if extra and common is not None:
            read = self._with_common(read, weights, common)
        places = {
            name: self._by_block(array, groups, -(-outputs // lanes))
            for name, array in read.items()
        }
        for number, (group, output) in enumerate(product(range(groups), range(0, outputs, lanes))):
            moves = (group * depth, self.y.itemsize * (group * outputs + output))
            block = {name: start + number * size for name, (start, size) in places.items()}
            count = min(lanes, outputs - output)
            written = count if line is None else line.pixels * count
            fixed = {"limits": limits, "grids": grids, "outputs": count, "common": on_the_way}
            parts += [
                self.part(WindowsRecord, tiles, moves, walk | fixed | block, written)
                for tiles in kinds
            ]
        return Work(
            parts, len(self.x) * groups * tiling.cycles(windows, outputs, -(-depth // FOUR))
        )

    def step(self, first: First, works: Sequence[Work]) -> NativeStep:
        """Make the step that runs ``first``, then all other work."""
        parts = [part for work in works for part in work.parts]
        return in_sequence(parts, self.memory, sum(work.cycles for work in works), first)

    def small(self, weights: Array) -> int:
        """Return 1, and set ``piece_steps``, where kernels are quicker that add products of some
        steps up as int16: weights [groups, o, ...] of int8 are small enough for that, as those of 4
        bits are.
        """
        each = np.abs(self.runs(weights, None).astype(np.int64))
        each = each.reshape(*each.shape[:-1], 2, 2).sum(-1).swapaxes(-1, -2)
        fitting = steps_of_pieces(each, MOST_SUM // self.largest)
        is_small = adds_small_dots() and fitting >= min(each.shape[-1], LEAST_STEPS)
        self.piece_steps = fitting if is_small else 0
        return int(is_small)

    def _with_common(
        self, read: Mapping[str, Array], weights: Array, common: Array
    ) -> dict[str, Array]:
        """Add, to a kernel's operands, 16 outputs with a 1 wherever a weight stands, and the number
        that is common to the weights of each output.
        """
        groups, outputs, *rest = weights.shape
        ones = self.runs(np.ones((groups, 1, *rest), np.int8), None)
        lanes = read["weights"].shape[-2]
        of_each = np.broadcast_to(common.reshape(common.shape[:2]), (groups, outputs))
        shape = (*read["weights"].shape[:-2], LANES, FOUR)
        wider = np.concatenate([read["weights"], np.broadcast_to(ones[..., None, :], shape)], -2)
        starts = np.pad(read["starts"], [(0, 0), (0, 0), (0, LANES)])
        commons = by_lanes(of_each.astype(np.int32), lanes)
        return {**read, "weights": wider, "starts": starts, "commons": commons}

    def _tiles(
        self,
        windows: Sequence[Case],
        tiling: Tiling,
        outputs: int,
        kernel: Callable[[int, int], Kernel],
        line: Line | None,
    ) -> list[Tiles]:
        """Return kernels and the tiles that they run on, where there are some."""
        steps = (self.x.shape[-1], outputs)
        if line is not None:
            starts = joined(self.rows.padded, self.columns.padded, line.pixels)
            table, _ = tables([whole for whole, _ in starts], 1, steps)
            return [self.tiles(line.kernel, 1, table)]
        sizes = (tiling.pixels, SMALL)
        cut = zip(sizes, tables(windows, tiling.pixels, steps, tiling.few, SMALL), strict=True)
        return [self.tiles(kernel(n, tiling.vectors), n, table) for n, table in cut if len(table)]

    def tiles(self, kernel: Kernel, pixels: int, table: Table) -> Tiles:
        """Choose a kernel for tiles of ``pixels`` pixels, and their table."""
        place, row = kept(table, pixels, self.memory), table.nbytes // len(table)
        return Tiles(kernel, place, len(table), row, result_moves(table, self.y.itemsize))

    def _by_block(self, array: Array, groups: int, blocks: int) -> tuple[int, int]:
        """Keep an array [groups, blocks, ...]; return its address and the bytes of a block."""
        place = self.memory.keep(array, groups, blocks, *array.shape[2:])
        return place, array.nbytes // (groups * blocks)

    def runs(self, weights: Array, line: Line | None, filler: int = 0) -> Array:
        """Lay out weights whose inputs are neighbours in memory, in steps: [groups, o, kernel
        height, runs, steps, 4]; ``filler`` fills the last one. Those of a line's taps are apart.
        """
        groups, outputs, height, width, depth = weights.shape
        joined = groups == 1 and line is None and self.columns.padded.dilation == 1
        runs, length = (1, width * depth) if joined else (width, depth)
        shape = (groups, outputs, height, runs, -(-length // FOUR) * FOUR)
        runs_of_weights = np.full(shape, filler, np.int8)
        runs_of_weights[..., :length] = weights.reshape(groups, outputs, height, runs, length)
        return runs_of_weights.reshape(*runs_of_weights.shape[:-1], -1, FOUR)

    def _walk(self, runs: Array, lanes: int) -> dict[str, int]:
        """Return the steps from run to run: down and across in the copies, then in the weights; how
        many runs a row has, the steps of one, and rows.
        """
        _, _, height, across, steps, _ = runs.shape
        rows, columns = self.rows.padded, self.columns.padded
        run = steps * FOUR * lanes
        moves = {"weights_down": across * run, "weights_run": run}
        moves |= {"down": rows.dilation * self.row}
        moves |= {"across": columns.dilation * self.x.shape[-1]}
        moves |= {"piece_steps": self.piece_steps}
        return moves | {"runs": across, "steps": steps, "rows": height}

    def part(
        self,
        kind: type[ByteRecord],
        tiles: Tiles,
        moves: tuple[int, int],
        fields: dict[str, int],
        written: int,
    ) -> Part:
        """Describe the arrays that ``dot_tiles`` and ``hybrid_tiles`` run on, which write
        ``written`` outputs from each place of a tile on; ``fields`` are those that a record of this
        kind has of its own. Arrays that a kernel does not read are at 0.
        """
        images = len(self.x)
        image = self.y.nbytes // images
        by_image = turns(images, image)
        to = reach(self.y, self.y.itemsize * written, by_image, tiles.results, begin=moves[1])
        unread = dict.fromkeys(set(kind.layout.names or ()) & READ_BY_SOME, 0)
        common = ByteRecord(
            table=tiles.place,
            tiles=tiles.number,
            x=self.copies + moves[0],
            y=to,
            images=images,
            x_image=self.image,
            y_image=image,
            limits=fields["limits"],
        )
        record = kind(**common.fields() | unread | fields)
        return Part(tiles.kernel.address, record, tiles.row)


def tiling_of(windows: Sequence[Case], outputs: int, depth: int) -> Tiling:
    """Choose the quickest tiles; a pixel alone has as many outputs as hide how long a sum takes."""
    if sum(len(case.y) for case in windows) == 1 and vector_registers() > MOST_ALONE:
        return Tiling(1, min(MOST_ALONE, -(-outputs // LANES)))
    most = PAIRED_VECTORS if PAIRS else None
    return Tiling.of(windows, outputs, -(-depth // FOUR), most)


def steps_of_pieces(each: Array, most: int) -> int:
    """Choose how many steps a piece of a run has, so that magnitudes [..., steps] of none add up to
    more than ``most``; 0 where one step has more.
    """
    steps = int(each.shape[-1])
    if each.max(initial=0) > most:
        return 0
    fewest = max(1, -(-int(each.sum(-1).max(initial=0)) // most))
    for count in range(fewest, steps + 1):
        size = -(-steps // count)
        if int(np.add.reduceat(each, np.arange(0, steps, size), -1).max()) <= most:
            return size
    return 0


def padded_to(count: int, step: int) -> int:
    """Round up to the next multiple of ``step``."""
    return -(-count // step) * step


def folded(weights: Array, zero: int) -> Array:
    """Compute the starts of sums of products with unsigned bytes with which ``zero`` counts as 0:
    int64 [groups, o]. ``weights`` are [groups, o, ...].
    """
    total: Array = weights.astype(np.int64).reshape(*weights.shape[:2], -1).sum(-1)
    return -zero * total
