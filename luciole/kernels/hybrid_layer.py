"""Convolutions with 8 bit weights under float inputs on their way to compiled kernels: inputs are
quantized into a padded copy, whose windows all are whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

import numpy as np

from luciole.ir import Array
from luciole.ir.rules import padding_before, window
from luciole.kernels import dot_tiles
from luciole.kernels.float_layer import ACTIVATIONS, TANH, by_lanes, starts
from luciole.kernels.float_tiling import SMALL, Tiling
from luciole.kernels.memory import Memory
from luciole.kernels.pixel_tiles import cases, tables
from luciole.kernels.registry import NativeStep
from luciole.kernels.sequence import Part, in_sequence
from luciole.kernels.spans import Axis
from luciole.schema.enums import ActivationFunctionType, Padding

MOST_PRODUCTS = (2**31 - 1) // 127**2
"""As many of -127 to 127 fit into a sum of int32 for certain."""

ZERO = 128
"""The byte that stands for 0."""

FOUR = 4
"""Products of one step: weights of a run are filled up to a multiple with zeros."""


@dataclass(frozen=True)
class Side:
    """One axis of an image: its extent, the padding in front, and windows over all of it padded."""

    size: int
    before: int
    padded: Axis

    @classmethod
    def of(cls, size: int, kernel: int, stride: int, dilation: int, padding: Padding) -> Side:
        """The axis of a window over ``size`` inputs. Raises ShapeError where it does not fit."""
        outputs = window(size, kernel, stride, dilation, padding) or 0
        before = padding_before(size, kernel, stride, dilation, padding)
        needed = (outputs - 1) * stride + (kernel - 1) * dilation + 1
        extent = max(needed, before + size)
        return cls(size, before, Axis.of(extent, kernel, stride, dilation, Padding.VALID))


@dataclass
class HybridLayer:
    """One layer on its way to a step. ``scale`` is that of the weights."""

    rows: Side
    columns: Side
    activation: ActivationFunctionType
    x: Array
    y: Array
    scale: np.float32
    memory: Memory = field(default_factory=Memory)

    def __post_init__(self) -> None:
        """Make room for the padded copies, and for what sums of each image are worth."""
        self._row = self.columns.padded.size * self.x.shape[-1]
        self._image = self.rows.padded.size * self._row
        copies = np.full(len(self.x) * self._image + FOUR, ZERO, np.uint8)
        self._copies = self.memory.keep(copies)
        self._factors = self.memory.scratch(len(self.x))
        self._limits = self.memory.keep(np.array(ACTIVATIONS[self.activation], np.float32))

    def convolution(self, weights: Array, bias: Array | None) -> NativeStep:
        """Windows over groups of channels. ``weights`` are [groups, o, kernel height, kernel width,
        depth].
        """
        groups, outputs, _, _, depth = weights.shape
        found = cases(self.rows.padded, self.columns.padded)
        tiling = Tiling.of(found, outputs, -(-depth // FOUR))
        lanes, runs = tiling.lanes, self._runs(weights)
        channels = self.x.shape[-1]
        cut = tables(found, tiling.pixels, (channels, groups * outputs), tiling.few, SMALL)
        kinds = [
            (
                dot_tiles.windows(pixels, tiling.vectors, int(self.activation == TANH)),
                self.memory.keep(table),
                table,
            )
            for pixels, table in zip((tiling.pixels, SMALL), cut, strict=True)
            if len(table)
        ]
        walk, places = self._walk(runs, lanes), self._packed(weights, runs, bias, lanes)
        parts = [Part(dot_tiles.quantize.address, self._quantizing(), 0)]
        for number, (group, first) in enumerate(product(range(groups), range(0, outputs, lanes))):
            moves = (group * depth, 4 * (group * outputs + first))
            block = [start + number * size for start, size in places]
            rest = (*block, min(lanes, outputs - first), self._factors, runs.shape[2])
            for kernel, place, table in kinds:
                record = self._record(moves, (place, len(table)), walk, rest)
                parts.append(Part(kernel.address, record, table.nbytes // len(table)))
        return in_sequence(parts, self.memory.arrays, cycles=0)

    def _quantizing(self) -> Array:
        """What ``dot_tiles.quantize`` runs on: rows of the images, and where they go."""
        images, height, width, channels = self.x.shape
        rows, length = height, width * channels
        if self._row == length:  # nothing stands between rows
            rows, length = 1, height * length
        first = self.rows.before * self._row + self.columns.before * channels
        places = (self.x.ctypes.data, self._copies + first)
        sizes = (images, self.x.nbytes // images, self._image, rows, length, self._row)
        scale = self.memory.keep(np.array([self.scale], np.float32))
        return np.array([*places, *sizes, self._factors, scale], np.int64)

    def _runs(self, weights: Array) -> Array:
        """Weights whose inputs are neighbours in memory, in steps: [groups, o, kernel height, runs,
        steps, 4].
        """
        groups, outputs, height, width, depth = weights.shape
        joined = groups == 1 and self.columns.padded.dilation == 1
        runs, length = (1, width * depth) if joined else (width, depth)
        found = np.zeros((groups, outputs, height, runs, -(-length // FOUR) * FOUR), np.int8)
        found[..., :length] = weights.reshape(groups, outputs, height, runs, length)
        return found.reshape(*found.shape[:-1], -1, FOUR)

    def _packed(
        self, weights: Array, runs: Array, bias: Array | None, lanes: int
    ) -> list[tuple[int, int]]:
        """Weights, what their sums begin with, and biases by blocks: address, bytes of a block."""
        sums = -ZERO * weights.astype(np.int64).sum((2, 3, 4))
        arrays = (
            np.moveaxis(by_lanes(runs, lanes), -2, -1),
            by_lanes(sums.astype(np.int32), lanes),
            by_lanes(starts(bias, *weights.shape[:2]), lanes),
        )
        return [(self.memory.keep(a), a.nbytes // (a.shape[0] * a.shape[1])) for a in arrays]

    def _walk(self, runs: Array, lanes: int) -> tuple[int, ...]:
        """From run to run: down and across in the copies, then in the weights; how many there are
        in a row, and the steps of one.
        """
        _, _, _, across, steps, _ = runs.shape
        rows, columns = self.rows.padded, self.columns.padded
        moves = (rows.dilation * self._row, columns.dilation * self.x.shape[-1])
        run = steps * FOUR * lanes
        return (*moves, across * run, run, across, steps)

    def _record(
        self,
        moves: tuple[int, int],
        table: tuple[int, int],
        walk: tuple[int, ...],
        block: tuple[int, ...],
    ) -> Array:
        """What ``dot_tiles.windows`` runs on."""
        images = len(self.x)
        places = (self._copies + moves[0], self.y.ctypes.data + moves[1])
        sizes = (images, self._image, self.y.nbytes // images, *table, self._limits)
        return np.array([*places, *sizes, *walk, *block], np.int64)
