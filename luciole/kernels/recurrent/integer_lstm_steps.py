"""The compiled loop of LSTMs in integers: exactly what ``integer_lstm_cell`` computes.

16 cells are multiplied at once, one per lane, all four gates in one walk over the inputs and one
over the last outputs. Functions of 16 bits are looked up.
"""

from __future__ import annotations

import numpy as np

from luciole.kernels import jit
from luciole.kernels.fixed_point.scalars import (
    between,
    inverse_root,
    multiply,
    quotient,
    rounding_divide,
    wrapped,
)
from luciole.kernels.jit import LANES
from luciole.kernels.jit.record import Record, reader
from luciole.kernels.jit.vector.conversions import Kind, integers_at
from luciole.kernels.jit.vector.dots import integer_rows, write_vectors
from luciole.kernels.jit.vector.fixed_point import LIFTED_BYTES, rescaled, saturated_sums
from luciole.kernels.jit.vector.moves import copy
from luciole.kernels.jit.vector.pixels import place
from luciole.kernels.layers.int8.byte_layer import ZERO
from luciole.kernels.layers.int8.dot_tiles import turn
from luciole.kernels.recurrent.byte_products import STEP_BYTES, add_products, matrix_at

GATES = 4
"""Vectors of a block: input, forget, candidate and output gate of 16 cells."""

INPUT, FORGET, CANDIDATE, OUTPUT = range(GATES)

STEP = GATES * STEP_BYTES
CONSTANTS = GATES * LIFTED_BYTES
INT8, INT16, INT32 = int(Kind.INT8), int(Kind.INT16), int(Kind.INT32)
BITS, ONE = 15, 2**15 - 1
"""Fraction bits of a number without integer bits, and 1: the next number below."""


class Factor(Record):
    """A factor as integers."""

    multiplier: int
    shift: int


class Peephole(Record):
    """Weights [cells] under the state of cells, and the ``Factor`` of each product."""

    weights: int
    multiplier: int
    shift: int


class Norm(Record):
    """Layer normalization of a gate: coefficients (int16) and biases (int32) [cells], their
    ``Factor``, and what stands for a variance of 0.
    """

    coefficients: int
    biases: int
    multiplier: int
    shift: int
    guard: int


class LSTMRecord(Record):
    """Batches of a result and an operand, both states, and room for a row of each that is
    multiplied: as unsigned bytes, filled up with zeros.
    """

    batches: int
    times: int
    inputs: int
    cells: int
    outputs: int
    y: int
    x: int
    output_state: int
    cell_state: int
    x_time: int
    """Bytes from step to step of time, and from batch to batch."""
    x_batch: int
    y_time: int
    y_batch: int
    x_copy: int
    output_copy: int
    hidden_copy: int
    gates: int
    """Room for the gates, int32 [blocks, gates, 16], and for projected outputs, int32."""
    projected: int
    of_input: int
    """A ``MatrixRecord`` each; that of the projection is 0 where there is none."""
    of_output: int
    projection: int
    coupled: int
    """1 where the input gate is the rest of the forget gate."""
    peepholes: int
    """A table of ``Peephole``, of input, forget and output gate; 0 where there is none."""
    norms: int
    """A table of ``Norm``, of all gates; 0 where there is none."""
    logistic: int
    """Tables of functions of 16 bits: of gates, of the candidate, and of the state."""
    tanh_of_gate: int
    tanh_of_cell: int
    cell_shift: int
    """Bits by which the product of input gate and candidate is larger than the state."""
    cell_least: int
    cell_most: int
    hidden: int
    """The ``Factor`` of the cells' outputs, its zero point, that of the result, and its limits."""
    hidden_zero: int
    zero: int
    least: int
    most: int


_factor_at, _peephole_at, _norm_at = reader(Factor), reader(Peephole), reader(Norm)


@jit.kernel
def lstm_steps(r: LSTMRecord) -> None:
    """Run one step after the other, batch by batch; the states become the last step's."""
    for batch in range(r.batches):
        x, y = r.x + r.x_batch * batch, r.y + r.y_batch * batch
        state, cells = r.output_state + r.outputs * batch, r.cell_state + 2 * r.cells * batch
        for _ in range(r.times):
            turn(x, r.x_copy, ZERO, r.inputs)
            turn(state, r.output_copy, ZERO, r.outputs)
            _multiply_gates(r)
            shown = r.hidden_copy if r.projection else y
            for gate in range(r.coupled, OUTPUT):
                _finish_gate(r, gate, cells)
            _step_cells(r, cells)
            _finish_gate(r, OUTPUT, cells)
            _show_cells(r, cells, shown)
            if r.projection:
                turn(shown, shown, ZERO, r.cells)
                _project(r, y)
            copy(state, y, r.outputs)
            x += r.x_time
            y += r.y_time


@jit.separate
def _multiply_gates(r: LSTMRecord) -> None:
    """Compute all gates of all cells before peepholes."""
    a, b, blocks = matrix_at(r.of_input, 0), matrix_at(r.of_output, 0), 0
    x, hidden = place(r.x_copy), place(r.output_copy)
    while blocks < a.blocks:
        starts, constants = STEP * blocks, CONSTANTS * blocks
        first = integer_rows(1, GATES, a.starts + starts)
        second = integer_rows(1, GATES, b.starts + starts)
        first = add_products(first, x, a.weights + STEP * a.steps * blocks, a.steps, STEP)
        second = add_products(second, hidden, b.weights + STEP * b.steps * blocks, b.steps, STEP)
        first = rescaled(first, a.constants + constants, 1)
        second = rescaled(second, b.constants + constants, 1)
        write_vectors(saturated_sums(first, second), r.gates + STEP * blocks)
        blocks += 1


@jit.inlined
def _gate_at(r: LSTMRecord, gate: int, cell: int) -> jit.Pointer:
    """Return where a gate of a cell is kept."""
    place = STEP * (cell // LANES) + 4 * (LANES * gate + cell % LANES)
    return integers_at(r.gates + place, INT32)


@jit.inlined
def _read_gate(r: LSTMRecord, gate: int, cell: int) -> int:
    return int(np.int64(_gate_at(r, gate, cell)[0]))


@jit.separate
def _finish_gate(r: LSTMRecord, gate: int, cells: int) -> None:
    """Add the peepholes' products with the cells' state, and normalize, where a gate has these."""
    if r.peepholes and gate != CANDIDATE:
        _peep(r, gate, cells)
    if r.norms:
        _normalize(r, gate)


@jit.separate
def _peep(r: LSTMRecord, gate: int, cells: int) -> None:
    peephole, state = _peephole_at(r.peepholes, min(gate, 2)), integers_at(cells, INT16)
    weights = integers_at(peephole.weights, INT16)
    for cell in range(r.cells):
        product = int(np.int64(state[cell])) * int(np.int64(weights[cell]))
        x = _read_gate(r, gate, cell) + multiply(product, peephole.multiplier, peephole.shift)
        _gate_at(r, gate, cell)[0] = between(x, -ONE - 1, ONE)


@jit.separate
def _normalize(r: LSTMRecord, gate: int) -> None:
    """Give a gate of all cells mean 0 and variance 1, then multiply by the coefficients."""
    norm, total, squares = _norm_at(r.norms, gate), 0, 0
    for cell in range(r.cells):
        x = _read_gate(r, gate, cell)
        total += x
        squares += x * x
    mean = quotient(total * 1024, r.cells)
    variance = quotient(squares * ((1 << 20) // r.cells) - mean * mean, 1 << 20)
    multiplier, shift = inverse_root(norm.guard if variance < 1 else variance)
    coefficients = integers_at(norm.coefficients, INT16)
    biases = integers_at(norm.biases, INT32)
    for cell in range(r.cells):
        x = multiply(wrapped(1024 * _read_gate(r, gate, cell) - mean), multiplier, shift)
        x = x * int(np.int64(coefficients[cell])) + int(np.int64(biases[cell]))
        x = wrapped(quotient(x + (512 if x > 0 else -512), 1024))
        x = multiply(x, norm.multiplier, norm.shift)
        _gate_at(r, gate, cell)[0] = between(x, -ONE - 1, ONE)


@jit.separate
def _step_cells(r: LSTMRecord, cells: int) -> None:
    """Compute the next state of every cell."""
    state = integers_at(cells, INT16)
    for cell in range(r.cells):
        forget = _looked_up(r.logistic, _read_gate(r, FORGET, cell))
        write = ONE - forget
        if not r.coupled:
            write = _looked_up(r.logistic, _read_gate(r, INPUT, cell))
        candidate = _looked_up(r.tanh_of_gate, _read_gate(r, CANDIDATE, cell))
        after = rounding_divide(forget * int(np.int64(state[cell])), BITS)
        after += rounding_divide(write * candidate, r.cell_shift)
        state[cell] = between(after, r.cell_least, r.cell_most)


@jit.separate
def _show_cells(r: LSTMRecord, cells: int, shown: int) -> None:
    """Compute the output of every cell from its state."""
    state, result = integers_at(cells, INT16), integers_at(shown, INT8)
    factor = _factor_at(r.hidden, 0)
    for cell in range(r.cells):
        read = _looked_up(r.logistic, _read_gate(r, OUTPUT, cell))
        read *= _looked_up(r.tanh_of_cell, int(np.int64(state[cell])))
        read = multiply(read, factor.multiplier, factor.shift) + r.hidden_zero
        result[cell] = between(read, -128, 127)


@jit.inlined
def _looked_up(table: int, x: int) -> int:
    return int(np.int64(integers_at(table, INT16)[x + ONE + 1]))


@jit.separate
def _project(r: LSTMRecord, y: int) -> None:
    """Multiply the outputs of cells by the weights of the projection."""
    matrix, at, block = matrix_at(r.projection, 0), place(r.hidden_copy), 0
    while block < matrix.blocks:
        tile = integer_rows(1, GATES, matrix.starts + STEP * block)
        weights = matrix.weights + STEP * matrix.steps * block
        tile = add_products(tile, at, weights, matrix.steps, STEP)
        scaled_sums = rescaled(tile, matrix.constants + CONSTANTS * block, 1)
        write_vectors(scaled_sums, r.projected + STEP * block)
        block += 1
    sums, result = integers_at(r.projected, INT32), integers_at(y, INT8)
    for output in range(r.outputs):
        steps = between(int(np.int64(sums[output])) + r.zero, -128, 127)
        result[output] = between(steps, r.least, r.most)
