"""Convolutions of 8 bit integers with weights for each channel on their way to compiled kernels:
rows of 64 channels, whose taps come together in one register four by four.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from luciole.ir import Array
from luciole.kernels import dot_tiles
from luciole.kernels.byte_layer import FOUR, padded_to
from luciole.kernels.int8_layer import IntegerLayer, Outputs
from luciole.kernels.jit import LANES
from luciole.kernels.jit.processor import vector_registers
from luciole.kernels.pixel_tiles import Case, joined, tables
from luciole.kernels.registry import NativeStep
from luciole.kernels.sequence import Part, in_sequence

ROW = 4 * LANES
"""Channels in a row."""

ORDER = np.arange(ROW).reshape(FOUR, FOUR, FOUR).transpose(1, 0, 2).reshape(-1)
"""The channels in the order that they have in registers, see ``jit.dots.add_taps``."""

TILE_PIXELS = 0.7
"""What a tile costs besides its pixels, in pixels."""

TAP_CYCLES, ROW_CYCLES = 2, 15
"""What a tap of a row takes, and what its results do."""


@dataclass(kw_only=True)
class DepthwiseLayer(IntegerLayer):
    """One layer on its way to a step.

    A row of 64 channels is of one pixel, of neighbouring pixels that have few channels, or else of
    four pixels with 16 channels each.
    """

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

    def depthwise(self, weights: Array, bias: Array | None) -> NativeStep | None:
        """Windows over each channel. ``weights`` are [channels, taps]."""
        outputs, centred = self.outputs(weights[None], bias, exact=False)
        if outputs is None:
            return None
        rows, columns = self.rows.padded, self.columns.padded
        found = [whole for whole, _ in joined(rows, columns, self.neighbours)]
        count = _pixels(found, self.pieces)
        channels = self.x.shape[-1]
        table, _ = tables(found, count * self.pieces, (self.pixel, channels))
        taps = weights.shape[1]
        full = -(-taps // FOUR) - 1
        kernel = dot_tiles.channels(count, self.pieces, taps - full * FOUR)
        place = (self.memory.keep(table), len(table), self.limits())
        walk = (self._offsets(full + 1), full)
        parts = []
        for first, *block in self._blocks(centred[0], outputs, full + 1):
            moves = (first, first)
            record = self.record(moves, place, (*walk, min(LANES, channels - first), *block))
            parts.append(Part(kernel.address, record, table.nbytes // len(table)))
        cycles = len(self.x) * len(table) * len(parts) * count * (taps * TAP_CYCLES + ROW_CYCLES)
        return in_sequence(parts, self.memory.arrays, cycles, self.copying())

    def _blocks(
        self, weights: Array, outputs: Outputs, steps: int
    ) -> Sequence[tuple[int, int, int, int]]:
        """First channel of each row, and where weights, starts and constants are."""
        channels, taps = weights.shape
        width = ROW // self.pieces // self.neighbours
        places = []
        for first in range(0, channels, width):
            order = np.minimum(first + ORDER % width, channels - 1)
            packed = np.zeros((steps * FOUR, ROW), np.int8)
            packed[:taps] = weights[order].T
            by_four = packed.reshape(steps, FOUR, ROW).transpose(0, 2, 1)
            arrays = (by_four, *outputs.of_channels(order).fixed(ROW))
            weights_at, starts_at, constants_at = map(self.memory.keep, arrays)
            places.append((first, weights_at, starts_at, constants_at))
        return places

    def _offsets(self, steps: int) -> int:
        """Where the distances of taps from the first one are."""
        rows, columns = self.rows.padded, self.columns.padded
        down = np.arange(rows.kernel)[:, None] * rows.dilation * self.row
        across = np.arange(columns.kernel) * columns.dilation * self.pixel
        offsets = np.zeros(steps * FOUR, np.int32)
        offsets[: down.size * across.size] = (down + across).reshape(-1)
        return self.memory.keep(offsets)


def _pixels(found: Sequence[Case], pieces: int) -> int:
    """Rows in a tile: as many as registers hold, or fewer that leave less over."""
    most = 4 if vector_registers() > 4 * FOUR else 1
    number = sum(-(-len(case.y) // pieces) for case in found)
    return min(range(1, most + 1), key=lambda n: -(-number // n) * (n + TILE_PIXELS))
