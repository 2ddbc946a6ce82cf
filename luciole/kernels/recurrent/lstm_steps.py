"""The compiled loop of UNIDIRECTIONAL_SEQUENCE_LSTM, without its optional parts.

16 cells are computed at once, one per lane: the products of all four gates in one walk over the
inputs and the last outputs.
"""

from __future__ import annotations

from functools import cache
from typing import TypeAlias

import numpy as np

from luciole.ir import Array
from luciole.kernels import jit
from luciole.kernels.elements import reduce
from luciole.kernels.formulas.elementwise import Binary, Unary
from luciole.kernels.jit import LANES, floats
from luciole.kernels.jit.record import Shared
from luciole.kernels.jit.vector import elementwise
from luciole.kernels.jit.vector.elementwise import Vector
from luciole.kernels.jit.vector.moves import copy

ADD, MUL = int(Binary.ADD), int(Binary.MUL)
LOGISTIC, TANH, CLAMP = int(Unary.LOGISTIC), int(Unary.TANH), int(Unary.CLAMP)
ZERO = np.float32(0)
GATES = 4


def packed(matrices: list[Array]) -> Array:
    """Interleave weights of the four gates, each [cells, n], as [blocks of 16 cells, n, gates,
    16].
    """
    stacked = np.stack(matrices)
    gates, cells, n = stacked.shape
    blocks = -(-cells // LANES)
    padded = np.zeros((gates, blocks * LANES, n), np.float32)
    padded[:, :cells] = stacked
    return np.ascontiguousarray(padded.reshape(gates, blocks, LANES, n).transpose(1, 3, 0, 2))


class LSTMFields(Shared):
    """Batches of a result and an operand, both states, and biases."""

    y: int
    x: int
    output_state: int
    cell_state: int
    biases: int
    times: int
    inputs: int
    cells: int
    x_time: int
    """Bytes from step to step of time, and from batch to batch."""
    x_batch: int
    y_time: int
    y_batch: int
    limit: float
    """Limit of a cell's state, in magnitude."""


class LSTMRecord(LSTMFields):
    """The weights of inputs and outputs."""

    weights: int


@cache
def kernel() -> jit.Kernel:
    """Make the kernel of all steps of time."""

    @jit.kernel
    def lstm_steps(r: LSTMRecord) -> None:
        for batch in range(r.begin, r.end):
            hidden = r.output_state + 4 * r.cells * batch
            cells = r.cell_state + 4 * r.cells * batch
            x, y = r.x + r.x_batch * batch, r.y + r.y_batch * batch
            for _ in range(r.times):
                for first in range(0, r.cells, LANES):
                    lanes = min(r.cells - first, LANES)
                    _cells(r, x, hidden, cells + 4 * first, y + 4 * first, first // LANES, lanes)
                copy(hidden, y, 4 * r.cells)
                x += r.x_time
                y += r.y_time

    return lstm_steps


@jit.inlined
def _cells(r: LSTMRecord, x: int, hidden: int, cell: int, y: int, block: int, lanes: int) -> None:
    """Compute one step of up to 16 cells: their state, and their outputs to y."""
    gates = _products(r.weights, r.biases, x, r.inputs, hidden, r.cells, block)
    next_cells(gates, r.limit, cell, y, lanes)


Gates: TypeAlias = tuple[Vector, Vector, Vector, Vector]
"""Input, forget, candidate and output gate of 16 cells before their activations."""


@jit.inlined
def next_cells(gates: Gates, limit: float, cell: int, y: int, lanes: int) -> None:
    """Compute the next state of up to 16 cells, and their outputs to y."""
    add, mul = elementwise.function(ADD), elementwise.function(MUL)
    logistic, tanh = elementwise.function(LOGISTIC), elementwise.function(TANH)
    clamp = elementwise.function(CLAMP)
    write = elementwise.mapped(logistic, gates[0], ZERO, ZERO)
    forget = elementwise.mapped(logistic, gates[1], ZERO, ZERO)
    candidate = elementwise.mapped(tanh, gates[2], ZERO, ZERO)
    read = elementwise.mapped(logistic, gates[3], ZERO, ZERO)
    kept = elementwise.combined(mul, forget, reduce.load(cell, lanes, ZERO))
    state = elementwise.combined(add, kept, elementwise.combined(mul, write, candidate))
    state = elementwise.mapped(clamp, state, -limit, limit)
    reduce.store(state, cell, lanes)
    shown = elementwise.mapped(tanh, state, ZERO, ZERO)
    reduce.store(elementwise.combined(mul, read, shown), y, lanes)


@jit.inlined
def _products(
    weights: int, biases: int, x: int, inputs: int, hidden: int, outputs: int, block: int
) -> Gates:
    """Compute the four gates of 16 cells before their activations."""
    at = biases + 4 * GATES * LANES * block
    a, b = elementwise.load_vector(at), elementwise.load_vector(at + 4 * LANES)
    c, d = elementwise.load_vector(at + 8 * LANES), elementwise.load_vector(at + 12 * LANES)
    at = weights + 4 * GATES * LANES * (inputs + outputs) * block
    for k in range(inputs + outputs):
        number = floats(x)[k] if k < inputs else floats(hidden)[k - inputs]
        factor = elementwise.spread(number)
        a = elementwise.plus_product(a, factor, elementwise.load_vector(at))
        b = elementwise.plus_product(b, factor, elementwise.load_vector(at + 4 * LANES))
        c = elementwise.plus_product(c, factor, elementwise.load_vector(at + 8 * LANES))
        d = elementwise.plus_product(d, factor, elementwise.load_vector(at + 12 * LANES))
        at += 4 * GATES * LANES
    return a, b, c, d
