"""The compiled loop of UNIDIRECTIONAL_SEQUENCE_LSTM, without its optional parts.

16 cells are computed at once, one per lane: the products of all four gates in one walk over the
inputs and the last outputs.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from luciole.ir import Array
from luciole.kernels import folds, jit
from luciole.kernels.jit import LANES, Record, elementwise, floats
from luciole.kernels.jit.elementwise import Binary, Unary
from luciole.kernels.jit.moves import copy

ADD, MUL = int(Binary.ADD), int(Binary.MUL)
LOGISTIC, TANH, CLAMP = int(Unary.LOGISTIC), int(Unary.TANH), int(Unary.CLAMP)
ZERO = np.float32(0)
GATES = 4


def packed(matrices: list[Array]) -> Array:
    """Weights of the four gates, each [cells, n], as [blocks of 16 cells, n, gates, 16]."""
    stacked = np.stack(matrices)
    gates, cells, n = stacked.shape
    blocks = -(-cells // LANES)
    padded = np.zeros((gates, blocks * LANES, n), np.float32)
    padded[:, :cells] = stacked
    return np.ascontiguousarray(padded.reshape(gates, blocks, LANES, n).transpose(1, 3, 0, 2))


@cache
def kernel() -> jit.Kernel:
    """Record: result, operand, output state, cell state, weights of inputs and outputs, biases,
    batches from and to, steps of time, inputs, cells, bytes from step to step and from batch to
    batch in the operand and in the result, the limit of a cell.
    """

    @jit.kernel
    def lstm_steps(r: Record) -> None:
        for batch in range(r[6], r[7]):
            hidden, cells = r[2] + 4 * r[10] * batch, r[3] + 4 * r[10] * batch
            x, y = r[1] + r[12] * batch, r[0] + r[14] * batch
            for _ in range(r[8]):
                for first in range(0, r[10], LANES):
                    lanes = min(r[10] - first, LANES)
                    _cells(r, x, hidden, cells + 4 * first, y + 4 * first, first // LANES, lanes)
                copy(hidden, y, 4 * r[10])
                x += r[11]
                y += r[13]

    return lstm_steps


@jit.merged
def _cells(r: Record, x: int, hidden: int, cell: int, y: int, block: int, lanes: int) -> None:
    """One step of up to 16 cells: their state, and their outputs to y."""
    add, mul = elementwise.function(ADD), elementwise.function(MUL)
    logistic, tanh = elementwise.function(LOGISTIC), elementwise.function(TANH)
    clamp, limit = elementwise.function(CLAMP), elementwise.number(r[15])
    gates = _products(r[4], r[5], x, r[9], hidden, r[10], block)
    write = elementwise.mapped(logistic, gates[0], ZERO, ZERO)
    forget = elementwise.mapped(logistic, gates[1], ZERO, ZERO)
    candidate = elementwise.mapped(tanh, gates[2], ZERO, ZERO)
    read = elementwise.mapped(logistic, gates[3], ZERO, ZERO)
    kept = elementwise.combined(mul, forget, folds.load(cell, lanes, ZERO))
    state = elementwise.combined(add, kept, elementwise.combined(mul, write, candidate))
    state = elementwise.mapped(clamp, state, -limit, limit)
    folds.store(state, cell, lanes)
    shown = elementwise.mapped(tanh, state, ZERO, ZERO)
    folds.store(elementwise.combined(mul, read, shown), y, lanes)


@jit.merged
def _products(
    weights: int, biases: int, x: int, inputs: int, hidden: int, outputs: int, block: int
) -> Any:
    """The four gates of 16 cells before their activations."""
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
