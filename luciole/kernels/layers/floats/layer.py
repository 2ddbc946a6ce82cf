"""Build compiled float convolutions and matrix products: cut them into tiles, pack their weights,
write their records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple, Protocol

import numpy as np

from luciole.ir import Array, Value
from luciole.ir.ops.activations import LIMITS
from luciole.kernels.core.contract import Context, NativeStep
from luciole.kernels.core.memory import Memory, Moves, reach, turns
from luciole.kernels.core.reasons import UNFIT, Declined
from luciole.kernels.jit import LANES, Kernel
from luciole.kernels.jit.processor import vector_registers
from luciole.kernels.layers.floats import loops
from luciole.kernels.layers.floats.tiling import DEPTHWISE_PIXELS, SMALL, Tiling
from luciole.kernels.layers.geometry.pixel_tiles import (
    MAX_PLACE,
    Case,
    Clamp,
    Table,
    cases,
    input_moves,
    joined,
    kept,
    result_moves,
    tables,
)
from luciole.kernels.layers.geometry.sequence import Part, in_sequence
from luciole.kernels.layers.geometry.spans import Axis
from luciole.schema.enums import ActivationFunctionType, Padding

TANH = ActivationFunctionType.TANH
ACTIVATIONS = {**LIMITS, TANH: (-np.inf, np.inf)}
"""Where results are cut off; what TANH does it does before."""


def misfit(
    activation: ActivationFunctionType, x: Array, y: Array, *constants: Value | None
) -> Declined | None:
    """Return None where a kernel can be built: constant weights, tensors that are not empty and
    whose places can be written in 32 bits, and an activation that clamps or is the hyperbolic
    tangent. Return the first reason why not elsewhere.
    """
    for value in constants:
        if value is not None and not value.is_constant:
            return Declined(f"{value.name!r}, weights or a bias, is no constant")
    if activation not in ACTIVATIONS:
        return Declined(f"no compiled form with a fused {activation.name}")
    fits = 0 < min(x.size, y.size) <= max(x.size, y.size) <= MAX_PLACE
    return None if fits else UNFIT


class Layered(Protocol):
    """An operator with activations, weights and perhaps a bias as operands."""

    activation: ActivationFunctionType
    operands: tuple[Value | None, ...]


class Arrays(NamedTuple):
    """Activations, weights, bias (or none) and result of a layer."""

    x: Array
    weights: Array
    bias: Array | None
    y: Array


def arrays_of(op: Layered, context: Context) -> Arrays | Declined:
    """Return the arrays of a layer, Declined where no kernel can be built, see ``misfit``."""
    x, weights, bias = (*context.operands, None)[:3]
    (y,) = context.results
    if x is None or weights is None:
        return UNFIT
    return misfit(op.activation, x, y, *op.operands[1:]) or Arrays(x, weights, bias, y)


@dataclass(frozen=True)
class Geometry:
    """Where windows lie, on how many images of how many channels."""

    images: int
    channels: int
    rows: Axis
    columns: Axis

    @classmethod
    def of(
        cls,
        shape: tuple[int, ...],
        kernel: tuple[int, int],
        stride: tuple[int, int],
        dilation: tuple[int, int],
        padding: Padding,
    ) -> Geometry:
        """Make the geometry of windows over NHWC images; sizes are (height, width). Images whose
        windows are single pixels are one long row.
        """
        images, h, w, channels = shape
        if (*kernel, *stride) == (1, 1, 1, 1):
            images, h, w = 1, 1, images * h * w
        rows, columns = (
            Axis.of(*sizes, padding) for sizes in zip((h, w), kernel, stride, dilation, strict=True)
        )
        return cls(images, channels, rows, columns)

    @classmethod
    def of_rows(cls, rows: int, channels: int) -> Geometry:
        """Make the geometry of a matrix whose rows are the pixels."""
        return cls.of((1, 1, rows, channels), (1, 1), (1, 1), (1, 1), Padding.VALID)


def by_lanes(array: Array, lanes: int) -> Array:
    """Lay [groups, o, ...] out as [groups, blocks, ..., lanes], filled up with zeros."""
    groups, outputs = array.shape[:2]
    blocks = -(-outputs // lanes)
    padded = np.zeros((groups, blocks * lanes, *array.shape[2:]), array.dtype)
    padded[:, :outputs] = array
    return np.moveaxis(padded.reshape(groups, blocks, lanes, *array.shape[2:]), 2, -1)


def starts(bias: Array | None, groups: int, outputs: int) -> Array:
    """Return the starts of sums, [groups, outputs]."""
    biases = np.zeros(groups * outputs, np.float32) if bias is None else bias
    return biases.reshape(groups, outputs)


class Tiles(NamedTuple):
    """A table of tiles: its address, how many there are, the bytes of one, and what they add to the
    addresses of inputs and results.
    """

    place: int
    number: int
    row: int
    moves: tuple[Moves, Moves]


@dataclass
class FloatLayer:
    """Builder of one layer's step, in parts: one for each block of outputs and kind of tile.
    Distances in memory are in bytes.
    """

    geometry: Geometry
    activation: ActivationFunctionType
    x: Array
    y: Array
    memory: Memory = field(default_factory=Memory)
    parts: list[Part] = field(default_factory=list)
    lanes: int = 0
    """Outputs in one block of a convolution; weights stand as [blocks, taps, depth, lanes]."""

    def __post_init__(self) -> None:
        """Find the limits of the activation, for all parts."""
        self._tanh = int(self.activation == TANH)
        low, high = ACTIVATIONS[self.activation]
        self._limits = self.memory.record(Clamp(low=low, high=high))

    def convolution(self, weights: Array, bias: Array | None) -> NativeStep:
        """Compute windows over groups of channels. ``weights`` are [groups, o, taps, depth]."""
        g = self.geometry
        groups, outputs, taps, depth = weights.shape
        windows = cases(g.rows, g.columns)
        tiling = Tiling.of(windows, outputs, depth)
        cut = tables(windows, tiling.pixels, (g.channels, groups * outputs), tiling.few, SMALL)
        kinds = [
            (loops.windows(pixels, tiling.vectors, self._tanh), self._tiles(table, pixels))
            for pixels, table in zip((tiling.pixels, SMALL), cut, strict=True)
        ]
        lanes, size = tiling.lanes, 4 * depth * tiling.lanes
        self.lanes = lanes
        walk = self._walk(size, joined=g.columns.dilation == 1 and groups == 1, depth=depth)
        weights_at, starts_at = self._packed(weights, bias, lanes)
        for group, first in product(range(groups), range(0, outputs, lanes)):
            moves = (4 * group * depth, 4 * (group * outputs + first))
            block = (weights_at, starts_at, min(lanes, outputs - first))
            for kernel, tiles in kinds:
                self._add(kernel, moves, tiles, walk, block, (depth, block[-1]))
            weights_at += taps * size
            starts_at += 4 * lanes
        return self._step(groups * tiling.cycles(windows, outputs, depth))

    def depthwise(self, weights: Array, bias: Array | None) -> NativeStep:
        """Compute windows over each channel. ``weights`` are [channels, taps]; neighbouring pixels
        of few channels share a vector.
        """
        g = self.geometry
        narrow = g.channels in (1, 2, 4, 8) and g.columns.stride == 1
        neighbours = LANES // g.channels if narrow else 1
        whole, alone = zip(*joined(g.rows, g.columns, neighbours), strict=True)
        begin = starts(bias, 1, g.channels)
        vectors = g.channels * neighbours // LANES
        tiling = Tiling.of_depthwise(whole, max(vectors, 1))
        self._whole_channels(
            whole, tiling, np.tile(weights, (neighbours, 1)), np.tile(begin, neighbours)
        )
        self._last_channels(whole if neighbours == 1 else alone, weights, begin)
        return self._step(tiling.depthwise_cycles(whole, vectors))

    def _whole_channels(
        self, windows: Sequence[Case], tiling: Tiling, weights: Array, starts: Array
    ) -> None:
        """Add parts for all channels that fill vectors."""
        channels, taps = len(weights) // LANES * LANES, weights.shape[1]
        size = 4 * tiling.lanes
        table, _ = tables(windows, tiling.pixels, (self.geometry.channels,) * 2)
        packed = self._packed(weights[None, :channels, :, None], starts[:, :channels], tiling.lanes)
        walk = self._walk(size, block=taps * size)
        kernel = loops.channels(tiling.pixels, tiling.vectors, self._tanh)
        blocks = channels // tiling.lanes
        touched = (blocks * tiling.lanes,) * 2
        tiles = self._tiles(table, tiling.pixels)
        self._add(kernel, (0, 0), tiles, walk, (*packed, blocks), touched)

    def _last_channels(self, windows: Sequence[Case], weights: Array, starts: Array) -> None:
        """Add parts for the channels that do not fill a vector."""
        done = len(weights) // LANES * LANES
        pixels = min(DEPTHWISE_PIXELS, vector_registers() // 2)
        table, _ = tables(windows, pixels, (self.geometry.channels,) * 2)
        packed = self._packed(weights[None, done:, :, None], starts[:, done:], LANES)
        walk = self._walk(4 * LANES)
        left = len(weights) - done
        kernel = loops.last_channels(pixels, self._tanh)
        moves, tiles = (4 * done, 4 * done), self._tiles(table, pixels)
        self._add(kernel, moves, tiles, walk, (*packed, left), (left, left))

    def _packed(self, weights: Array, bias: Array | None, lanes: int) -> tuple[int, int]:
        """Pack the weights [groups, o, taps, depth] and the starts of sums by blocks; return their
        addresses.
        """
        groups, outputs, _, depth = weights.shape
        begin, blocks = starts(bias, groups, outputs), -(-outputs // lanes)
        taps = self.geometry.rows.kernel * self.geometry.columns.kernel
        form, sizes = ("by lanes", lanes), (groups, blocks, taps, depth, lanes)
        packed = self.memory.keep_packed(weights, form, lambda: by_lanes(weights, lanes), *sizes)
        return packed, self.memory.keep(by_lanes(begin, lanes), groups, blocks, lanes)

    def _tiles(self, table: Table, pixels: int) -> Tiles:
        row = table.itemsize * table.shape[1]
        moves = input_moves(table, 4, self._steps), result_moves(table, 4)
        return Tiles(kept(table, pixels, self.memory), len(table), row, moves)

    @property
    def _steps(self) -> tuple[int, int]:
        """From tap to tap in the input, down and across."""
        g = self.geometry
        pixel = 4 * g.channels
        return g.rows.dilation * g.columns.size * pixel, g.columns.dilation * pixel

    def _walk(
        self, tap: int, joined: bool = False, depth: int = 0, block: int = 0
    ) -> dict[str, int]:
        """Return the steps from tap to tap: down and across in the input, then in weights of
        ``tap`` bytes each; and what else a kernel needs to go over them.
        """
        down, across = self._steps
        walk = {"down": down, "across": across, "joined": int(joined), "depth": depth}
        moves = {"weights_down": self.geometry.columns.kernel * tap, "weights_across": tap}
        return walk | moves | {"block": block}

    def _add(
        self,
        kernel: Kernel,
        moves: tuple[int, int],
        tiles: Tiles,
        walk: dict[str, int],
        block: tuple[int, int, int],
        touched: tuple[int, int],
    ) -> None:
        """Add one more part, if it has tiles and outputs: a kernel on its record. ``touched`` are
        the floats that it reads at each tap and writes for each pixel.
        """
        if not tiles.number or not block[-1]:
            return
        images, arrays = self.geometry.images, (self.x, self.y)
        sizes = [array.nbytes // images for array in arrays]
        places = [
            reach(array, 4 * count, turns(images, size), moved, begin=begin)
            for array, count, size, moved, begin in zip(
                arrays, touched, sizes, tiles.moves, moves, strict=True
            )
        ]
        x, y = places
        x_image, y_image = sizes
        weights, begin, outputs = block
        record = loops.FloatRecord(
            table=tiles.place,
            tiles=tiles.number,
            x=x,
            y=y,
            images=images,
            x_image=x_image,
            y_image=y_image,
            limits=self._limits,
            weights=weights,
            starts=begin,
            outputs=outputs,
            **walk,
        )
        self.parts.append(Part(kernel.address, record, tiles.row))

    def _step(self, cycles: float) -> NativeStep:
        return in_sequence(self.parts, self.memory, cycles * self.geometry.images)
