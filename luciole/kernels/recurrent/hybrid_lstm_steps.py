"""The compiled loop of UNIDIRECTIONAL_SEQUENCE_LSTM with 8 bit weights under a float input, without
its optional parts: exactly what ``operands.Weights`` computes.

16 cells are computed at once, one per lane: the products of all four gates in one walk over the
input, and one over the last outputs, each a row of bytes on a grid of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from luciole.ir import Array
from luciole.kernels import jit
from luciole.kernels.core.memory import Memory
from luciole.kernels.formulas.elementwise import Binary
from luciole.kernels.jit import LANES
from luciole.kernels.jit.record import Record, reader
from luciole.kernels.jit.vector import elementwise
from luciole.kernels.jit.vector.dots import scaled, write_vectors
from luciole.kernels.jit.vector.grids import integer_multiples
from luciole.kernels.jit.vector.moves import copy
from luciole.kernels.jit.vector.pixels import place
from luciole.kernels.layers.int8.byte_layer import FOUR
from luciole.kernels.layers.int8.hybrid_tiles import (
    Grid,
    grid_with_zero,
    grid_without_zero,
    write_row,
)
from luciole.kernels.recurrent.byte_products import (
    STEP_BYTES,
    add_products,
    packed,
    room_for_row,
)
from luciole.kernels.recurrent.lstm_steps import GATES, LSTMFields, next_cells

ADD = int(Binary.ADD)
STEP = GATES * STEP_BYTES
BLOCK = 4 * GATES * LANES
"""Bytes of a number for each gate of 16 cells."""


class SideRecord(Record):
    """What is multiplied by a row of floats: how many there are, room for them as bytes, weights of
    four gates in blocks of 16 cells, in steps of four inputs; of each block what sums count for
    each step of the byte of 0, and the scales of weights.
    """

    count: int
    row: int
    weights: int
    steps: int
    zero_sums: int
    scales: int


def side(weights: Sequence[Array], scales: Sequence[np.float32], memory: Memory) -> SideRecord:
    """Keep the weights [cells, n] of four gates, of one scale each."""
    cells, count = weights[0].shape
    blocks = -(-cells // LANES)
    padded = np.zeros((GATES, blocks * LANES, count), np.int8)
    padded[:, :cells] = np.stack(weights)
    rows = padded.reshape(GATES, blocks, LANES, count).swapaxes(0, 1).reshape(-1, count)
    whole = packed(rows, GATES)
    steps, lanes = whole.shape[1], GATES * LANES
    zero_sums = -rows.sum(1, dtype=np.int32).reshape(blocks, lanes)
    each = np.tile(np.repeat(np.array(scales, np.float32), LANES), (blocks, 1))
    return SideRecord(
        count=count,
        row=room_for_row(count, memory),
        weights=memory.keep(whole, blocks, steps, lanes, FOUR),
        steps=steps,
        zero_sums=memory.keep(zero_sums, blocks, lanes),
        scales=memory.keep(each, blocks, lanes),
    )


class HybridRecord(LSTMFields):
    """The ``SideRecord`` of the input and that of the last outputs, room for a block of gates, and
    a block of zeros.
    """

    sides: int
    gates: int
    zeros: int


_side_at = reader(SideRecord)


@cache
def kernel(asymmetric: int) -> jit.Kernel:
    """Make the kernel of all steps of time; rows have a zero point where ``asymmetric`` is 1."""

    @jit.kernel
    def hybrid_lstm_steps(r: HybridRecord) -> None:
        for batch in range(r.begin, r.end):
            hidden = r.output_state + 4 * r.cells * batch
            cells = r.cell_state + 4 * r.cells * batch
            x, y = r.x + r.x_batch * batch, r.y + r.y_batch * batch
            for _ in range(r.times):
                present = _quantized(_side_at(r.sides, 0), x, asymmetric)
                last = _quantized(_side_at(r.sides, 1), hidden, asymmetric)
                for first in range(0, r.cells, LANES):
                    lanes = min(r.cells - first, LANES)
                    _gates(r, present, last, first // LANES)
                    _next(r, cells + 4 * first, y + 4 * first, first // LANES, lanes)
                copy(hidden, y, 4 * r.cells)
                x += r.x_time
                y += r.y_time

    return hybrid_lstm_steps


@jit.inlined
def _quantized(side: SideRecord, x: int, asymmetric: int) -> Grid:
    """Write a row as bytes, and return their grid."""
    grid = grid_with_zero(x, side.count) if asymmetric else grid_without_zero(x, side.count)
    write_row(x, side.count, grid, side.row, side.count, asymmetric)
    return grid


@jit.inlined
def _gates(r: HybridRecord, present: Grid, last: Grid, block: int) -> None:
    """Write the four gates of 16 cells before their biases: products of the input, then those of
    the last outputs on top.
    """
    _add_side(_side_at(r.sides, 0), present, block, r.zeros, r.gates)
    _add_side(_side_at(r.sides, 1), last, block, r.gates, r.gates)


@jit.inlined
def _add_side(side: SideRecord, grid: Grid, block: int, starts: int, to: int) -> None:
    tile = integer_multiples(1, GATES, side.zero_sums + BLOCK * block, grid[2])
    weights = side.weights + STEP * side.steps * block
    tile = add_products(tile, place(side.row), weights, side.steps, STEP)
    write_vectors(scaled(tile, grid[1], side.scales + BLOCK * block, starts), to)


@jit.inlined
def _next(r: HybridRecord, cell: int, y: int, block: int, lanes: int) -> None:
    """Add biases, and compute the next state of up to 16 cells and their outputs to y."""
    bias = r.biases + BLOCK * block
    gates = (_biased(r, bias, 0), _biased(r, bias, 1), _biased(r, bias, 2), _biased(r, bias, 3))
    next_cells(gates, r.limit, cell, y, lanes)


@jit.inlined
def _biased(r: HybridRecord, bias: int, gate: int) -> elementwise.Vector:
    at = 4 * LANES * gate
    add = elementwise.function(ADD)
    bias_ = elementwise.load_vector(bias + at)
    return elementwise.combined(add, elementwise.load_vector(r.gates + at), bias_)
