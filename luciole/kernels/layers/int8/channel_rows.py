"""Build compiled convolutions with 8 bit weights for each channel: rows of 64 channels, whose taps
come together in one register four by four.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array
from luciole.kernels.core.contract import NativeStep
from luciole.kernels.jit import LANES, Kernel
from luciole.kernels.jit.processor import vector_registers
from luciole.kernels.layers.geometry.pixel_tiles import Case, joined, tables
from luciole.kernels.layers.geometry.sequence import First, in_sequence
from luciole.kernels.layers.int8.byte_layer import FOUR, ByteLayer, padded_to
from luciole.kernels.layers.int8.byte_records import ChannelsRecord

ROW = 4 * LANES
"""Bytes in a row."""

TILE_PIXELS = 0.7
"""Cost of a tile besides its pixels, in pixels."""

TAP_CYCLES, ROW_CYCLES = 2, 15
"""Cycles of a tap of a row, and of its results."""

Longs = NDArray[np.int64]

NO_TAPS: Longs = np.zeros(0, np.int64)

ChannelBlocks = Callable[[Longs], dict[str, Array]]
"""Function that returns, for some channels, the operands of a kernel by the names of its record's
fields.
"""


class ChannelRows(ByteLayer):
    """Builder of one layer's step.

    A row of 64 bytes is of one pixel, of neighbouring pixels that have few channels, or else of
    four pixels with 16 bytes each.
    """

    item: ClassVar[int] = 1
    """Bytes of an input and of a weight. A step has as many taps as make four bytes."""

    @property
    def neighbours(self) -> int:
        """Pixels whose channels together are a row, where windows move by 1; else 1."""
        channels, columns = self.x.shape[-1], self.columns.padded
        fit = ROW % channels == 0 and columns.stride == 1
        return ROW // channels if fit and columns.outputs * channels >= ROW else 1

    @property
    def pieces(self) -> int:
        """Pixels that a row has 16 channels of each, or 1."""
        return 1 if self.neighbours * self.x.shape[-1] % ROW == 0 else FOUR

    @property
    def pixel(self) -> int:
        """Bytes from one pixel to the next in the copies."""
        channels = self.x.shape[-1]
        return channels if self.pieces == 1 else padded_to(channels, LANES)

    def rows_of_channels(
        self,
        first: First,
        weights: Array,
        kernel: Callable[[int, int, int], Kernel],
        blocks: ChannelBlocks,
        limits: int,
        grids: int = 0,
        again: Longs = NO_TAPS,
    ) -> NativeStep:
        """Make the step that runs ``first``, then windows over each channel by the kernel for a
        number of rows, of pieces, and of taps in its last step.

        ``weights`` are [channels, taps]. ``blocks`` gives the kernel's operands for 64 channels;
        ``limits`` and ``grids`` are addresses that it reads for all. The last taps stand where
        those numbered in ``again`` do.
        """
        rows, columns = self.rows.padded, self.columns.padded
        windows = [whole for whole, _ in joined(rows, columns, self.neighbours)]
        count = self._pixels(windows)
        channels, taps = weights.shape
        table, _ = tables(windows, count * self.pieces, (self.pixel, channels))
        step = FOUR // self.item
        full = -(-taps // step) - 1
        compiled = kernel(count, self.pieces, taps - full * step)
        tiles = self.tiles(compiled, count * self.pieces, table)
        walk = {"limits": limits, "grids": grids, "full": full}
        walk["offsets"] = self._offsets(full + 1, again)
        parts = []
        for channel, block in self._blocks(weights, blocks, full + 1):
            moves = (self.item * channel, self.y.itemsize * channel)
            piece = min(LANES // self.item, channels - channel)
            whole = ROW // self.item
            fields, written = walk | {"piece": piece} | block, whole if self.pieces == 1 else piece
            parts.append(self.part(ChannelsRecord, tiles, moves, fields, written))
        cycles = len(self.x) * len(table) * len(parts) * count * (taps * TAP_CYCLES + ROW_CYCLES)
        return in_sequence(parts, self.memory, cycles, first)

    def _blocks(
        self, weights: Array, blocks: ChannelBlocks, steps: int
    ) -> Sequence[tuple[int, dict[str, int]]]:
        """Return the first channel of each row, and the addresses of weights and whatever else the
        kernel reads.
        """
        channels, taps = weights.shape
        row, step = ROW // self.item, FOUR // self.item
        width = row // self.pieces // self.neighbours
        places = []
        for first in range(0, channels, width):
            order = np.minimum(first + in_registers(step) % width, channels - 1)
            packed = np.zeros((steps * step, row), weights.dtype)
            packed[:taps] = weights[order].T
            by_step = packed.reshape(steps, step, row).transpose(0, 2, 1)
            read = {"weights": self.memory.keep(by_step, steps, row, step)}
            for name, array in blocks(order).items():
                read[name] = self.memory.keep(array, *array.shape)
            places.append((first, read))
        return places

    def _offsets(self, steps: int, again: Longs) -> int:
        """Keep the distances of taps from the first one, and return their address."""
        rows, columns = self.rows.padded, self.columns.padded
        down = np.arange(rows.kernel)[:, None] * rows.dilation * self.row
        across = np.arange(columns.kernel) * columns.dilation * self.pixel
        count = steps * (FOUR // self.item)
        offsets = np.zeros(count, np.int32)
        taps = (down + across).reshape(-1)
        offsets[: len(taps) + len(again)] = np.concatenate([taps, taps[again]])
        return self.memory.keep(offsets, count)

    def _pixels(self, windows: Sequence[Case]) -> int:
        """Choose the rows in a tile: as many as registers hold, or fewer that leave less over."""
        most = (4 if vector_registers() > 4 * FOUR else 1) * self.item
        number = sum(-(-len(case.y) // self.pieces) for case in windows)
        return min(range(1, most + 1), key=lambda n: -(-number // n) * (n + TILE_PIXELS))


def in_registers(step: int) -> Longs:
    """Return a row's channels in the order that they have in registers where a step has ``step``
    taps, see ``jit.dots.add_taps``.
    """
    channels = np.arange(LANES * step).reshape(FOUR, step, FOUR)
    return np.asarray(channels.transpose(1, 0, 2).reshape(-1), np.int64)
