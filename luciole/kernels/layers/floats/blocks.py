"""Compiled matrix products of floats and weights of 4 bits with a scale for each block of
neighbours: weights stay as small as they are in a file, and are scaled as they are read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.blockwise import Blockwise
from luciole.kernels import jit
from luciole.kernels.core.contract import NativeStep
from luciole.kernels.core.memory import Memory, reach
from luciole.kernels.jit import LANES
from luciole.kernels.jit.vector.nibbles import SIGN, add_nibbles
from luciole.kernels.jit.vector.pixels import pixels, rows_of, write_at
from luciole.kernels.layers.floats.layer import ACTIVATIONS, TANH, Geometry, by_lanes, starts
from luciole.kernels.layers.floats.tiling import SMALL, Tiling
from luciole.kernels.layers.geometry.pixel_tiles import (
    TAP_FIELDS,
    Clamp,
    Table,
    cases,
    clamp_at,
    input_moves,
    kept,
    result_moves,
    tables,
)
from luciole.kernels.layers.geometry.sequence import Part, Tiled, in_sequence
from luciole.schema.enums import ActivationFunctionType

PAIR = 2
"""Codes in a byte."""

FEW_ROWS, LARGE = 4, 16 << 20
"""Rows, and bytes of floats, from which on blocks are read as they are: 4096 x 4096 weights under a
row took 0.8 of the floats' time, 1024 x 1024 ones 1.8 times it (AVX2).
"""

PAIR_CYCLES = 2
"""Cycles of a pair of weights besides its products, in those of one channel."""


class BlockRecord(Tiled):
    """Rows of an operand and a result, limits, the blocks of a row and their pairs of codes; then
    what a block of outputs has: codes, scales, what sums begin with, and how many outputs.
    """

    x: int
    y: int
    limits: int
    blocks: int
    pairs: int
    weights: int
    scales: int
    starts: int
    outputs: int


def takes(blocks: Blockwise) -> bool:
    """Return whether the kernel reads these blocks: of nibbles without zero points."""
    whole = blocks.size % PAIR == 0 and not blocks.points.any()
    return blocks.dtype == TensorType.INT4 and whole


def pays(rows: int, weights: int) -> bool:
    """Return whether ``weights`` weights are not better made floats when a model is planned: few
    rows wait for memory, not for their products, where floats are more than caches hold.
    """
    return rows <= FEW_ROWS and 4 * weights >= LARGE


@cache
def rows_of_blocks(count: int, vectors: int, tanh: int) -> jit.Kernel:
    """Make the kernel of one block of outputs: tiles of ``count`` rows and ``vectors`` times 16
    outputs, followed by the hyperbolic tangent where ``tanh`` is 1.
    """
    lanes, size = vectors * LANES, 4 * (2 * count + TAP_FIELDS)

    @jit.kernel
    def nibble_rows(r: BlockRecord) -> None:
        limits = clamp_at(r.limits, 0)
        for table in range(r.table, r.table + r.tiles * size, size):
            at = pixels(count, r.x, table, 4)
            tile, offset, weights = rows_of(count, vectors, r.starts), 0, r.weights
            for block in range(r.blocks):
                scales = r.scales + 8 * lanes * block
                for _ in range(r.pairs):
                    tile = add_nibbles(tile, at, offset, weights, scales)
                    offset += 8
                    weights += lanes
            tile = jit.tanh(tile) if tanh else tile
            to = pixels(count, r.y, table + 4 * count, 4)
            write_at(tile, limits.low, limits.high, to, r.outputs)

    return nibble_rows


@dataclass
class BlockLayer:
    """Builder of the step of one layer: ``x`` [rows, n], ``y`` [rows, outputs]."""

    x: Array
    y: Array
    activation: ActivationFunctionType
    memory: Memory = field(default_factory=Memory)

    def product(self, codes: Array, blocks: Blockwise, bias: Array | None) -> NativeStep:
        """Multiply rows by weights, ``codes`` [outputs, n] of ``blocks``."""
        (rows, n), outputs = self.x.shape, len(codes)
        geometry = Geometry.of_rows(rows, n)
        windows = cases(geometry.rows, geometry.columns)
        tiling = Tiling.of(windows, outputs, n)
        cut = tables(windows, tiling.pixels, (n, outputs), tiling.few, SMALL)
        record = self._record(codes, blocks, bias, tiling.lanes)
        parts = [
            self._part(tiling, table, size, record, first)
            for first in range(0, outputs, tiling.lanes)
            for size, table in zip((tiling.pixels, SMALL), cut, strict=True)
            if len(table)
        ]
        cycles = tiling.cycles(windows, outputs, n) * (PAIR_CYCLES + rows) / rows
        return in_sequence(parts, self.memory, cycles)

    def _record(
        self, codes: Array, blocks: Blockwise, bias: Array | None, lanes: int
    ) -> BlockRecord:
        """Pack the operands of kernels, by blocks of outputs; the record is that of the first
        one.
        """
        outputs, n = codes.shape
        count, each = -(-outputs // lanes), n // blocks.size
        nibbles = (codes.astype(np.int64) + SIGN).astype(np.uint8).reshape(outputs, -1, PAIR)
        packed = by_lanes((nibbles[..., 0] | nibbles[..., 1] << 4)[None], lanes)
        scale = blocks.scale.reshape(outputs, each)
        scales = by_lanes(np.stack([scale, -SIGN * scale], 2)[None], lanes)
        low, high = ACTIVATIONS[self.activation]
        keep = self.memory.keep
        return BlockRecord(
            table=0,
            tiles=0,
            x=0,
            y=0,
            limits=self.memory.record(Clamp(low=low, high=high)),
            blocks=each,
            pairs=blocks.size // PAIR,
            weights=keep(packed, 1, count, n // PAIR, lanes),
            scales=keep(scales.astype(np.float32), 1, count, each, 2, lanes),
            starts=keep(by_lanes(starts(bias, 1, outputs), lanes), 1, count, lanes),
            outputs=outputs,
        )

    def _part(
        self, tiling: Tiling, table: Table, size: int, record: BlockRecord, first: int
    ) -> Part:
        """Describe tiles of some rows for the block of outputs that begins with one."""
        block, lanes, n = first // tiling.lanes, tiling.lanes, self.x.shape[1]
        count = min(lanes, record.outputs - first)
        moves = input_moves(table, 4, (0, 0)), result_moves(table, 4)
        own = record.replace(
            table=kept(table, size, self.memory),
            tiles=len(table),
            x=reach(self.x, 4 * n, moves[0]),
            y=reach(self.y, 4 * count, moves[1], begin=4 * first),
            weights=record.weights + block * n // PAIR * lanes,
            scales=record.scales + block * record.blocks * 8 * lanes,
            starts=record.starts + block * 4 * lanes,
            outputs=count,
        )
        kernel = rows_of_blocks(size, tiling.vectors, int(self.activation == TANH))
        return Part(kernel.address, own, table.itemsize * table.shape[1])
