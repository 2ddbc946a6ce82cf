"""The compiled loops of SVDF: filters remember their newest sums, which are weighed over time."""

from __future__ import annotations

from functools import cache

import numpy as np

from luciole.kernels import jit
from luciole.kernels.fixed_point.scalars import between, multiply, wrapped
from luciole.kernels.formulas.elementwise import Binary
from luciole.kernels.jit import LANES, Single, floats
from luciole.kernels.jit.record import Record
from luciole.kernels.jit.vector import elementwise
from luciole.kernels.jit.vector.conversions import Kind, integers_at
from luciole.kernels.jit.vector.dots import integer_rows, write_vectors
from luciole.kernels.jit.vector.fixed_point import LIFTED_BYTES, rescaled
from luciole.kernels.jit.vector.moves import shift
from luciole.kernels.jit.vector.pixels import place
from luciole.kernels.layers.int8.byte_layer import ZERO as ZERO_BYTE
from luciole.kernels.layers.int8.dot_tiles import turn
from luciole.kernels.recurrent.byte_products import STEP_BYTES, add_products, matrix_at

ADD, MUL = int(Binary.ADD), int(Binary.MUL)
ZERO = np.float32(0)
INT8, INT16, INT32 = int(Kind.INT8), int(Kind.INT16), int(Kind.INT32)
LEAST, MOST = -(2**15), 2**15 - 1
"""Limits of a remembered sum."""


class MemoryRecord(Record):
    """Batches of a result [units] and of a state [units, rank, memory], filters' newest sums
    [units, rank], weights over time [units, rank, memory], and biases [units].
    """

    batches: int
    units: int
    rank: int
    memory: int
    y: int
    state: int
    newest: int
    time: int
    bias: int


class FloatRecord(MemoryRecord):
    """The limits of results."""

    low: float
    high: float


class IntegerRecord(MemoryRecord):
    """Batches of an operand [inputs], room for one of them as unsigned bytes, the weights of inputs
    (a ``MatrixRecord``), and the factor that brings sums over time to the result.
    """

    x: int
    inputs: int
    copy: int
    matrix: int
    out_multiplier: int
    out_shift: int
    zero: int


@jit.kernel
def float_memory(r: FloatRecord) -> None:
    """Weigh the remembered and the newest sums of all batches, and remember the newest."""
    filters = r.units * r.rank
    for batch in range(r.batches):
        state, newest = r.state + 4 * filters * r.memory * batch, r.newest + 4 * filters * batch
        row, time, sums, y = state, r.time, floats(newest), floats(r.y + 4 * r.units * batch)
        filter_ = 0
        for unit in range(r.units):
            total: Single = ZERO
            for _ in range(r.rank):
                total += _weighed(row, time, r.memory, sums[filter_])
                row += 4 * r.memory
                time += 4 * r.memory
                filter_ += 1
            y[unit] = _clamped(total + floats(r.bias)[unit], r.low, r.high)
        shift(state, 4 * filters * r.memory, 4)
        last = floats(state)
        for number in range(filters):
            last[(number + 1) * r.memory - 1] = sums[number]


@jit.inlined
def _clamped(x: Single, low: Single, high: Single) -> Single:
    """Cut a number off at two limits; NaN stays NaN."""
    if x < low:
        return low
    return high if x > high else x


@jit.inlined
def _weighed(row: int, time: int, memory: int, newest: Single) -> Single:
    """Weigh a row of sums without its first, and the newest behind."""
    last, done = memory - 1, min(memory - 1, LANES)
    sums, weights = (
        elementwise.load_first(row + 4, done, ZERO),
        elementwise.load_first(time, done, ZERO),
    )
    total = elementwise.combined(elementwise.function(MUL), sums, weights)
    for first in range(LANES, last, LANES):
        at, lanes = 4 * first, min(last - first, LANES)
        sums = elementwise.load_first(row + at + 4, lanes, ZERO)
        weights = elementwise.load_first(time + at, lanes, ZERO)
        total = elementwise.plus_product(total, sums, weights)
    kept = elementwise.folded(elementwise.function(ADD), total)
    return np.float32(kept + newest * floats(time)[last])


@cache
def integer_memory(vectors: int) -> jit.Kernel:
    """Make the kernel of integers, whose filters come in blocks of ``vectors`` times 16."""
    step, constants_size = vectors * STEP_BYTES, vectors * LIFTED_BYTES

    @jit.kernel
    def svdf_steps(r: IntegerRecord) -> None:
        matrix, at = matrix_at(r.matrix, 0), place(r.copy)
        for batch in range(r.batches):
            turn(r.x + r.inputs * batch, r.copy, ZERO_BYTE, r.inputs)
            weights = matrix.weights
            for block in range(matrix.blocks):
                tile = integer_rows(1, vectors, matrix.starts + step * block)
                tile = add_products(tile, at, weights, matrix.steps, step)
                sums = rescaled(tile, matrix.constants + constants_size * block, 1)
                write_vectors(sums, r.newest + step * block)
                weights += step * matrix.steps
            _write_units(r, batch)

    return svdf_steps


@jit.separate
def _write_units(r: IntegerRecord, batch: int) -> None:
    """Remember the newest sums of a batch, and weigh the remembered ones."""
    y, bias = integers_at(r.y + r.units * batch, INT8), integers_at(r.bias, INT32)
    newest, time, filter_ = integers_at(r.newest, INT32), r.time, 0
    row = r.state + 2 * r.units * r.rank * r.memory * batch
    for unit in range(r.units):
        total = int(np.int64(bias[unit]))
        for _ in range(r.rank):
            latest = between(int(np.int64(newest[filter_])), LEAST, MOST)
            total += _weighed_integers(row, time, r.memory, latest)
            row += 2 * r.memory
            time += 2 * r.memory
            filter_ += 1
        scaled = multiply(wrapped(total), r.out_multiplier, r.out_shift)
        y[unit] = between(scaled + r.zero, -128, 127)


@jit.inlined
def _weighed_integers(row: int, time: int, memory: int, newest: int) -> int:
    """Shift a row of sums by one, and weigh it with the newest behind."""
    sums, weights, last = integers_at(row, INT16), integers_at(time, INT16), memory - 1
    total = newest * int(np.int64(weights[last]))
    for k in range(last):
        sums[k] = sums[k + 1]
        total += int(np.int64(sums[k]) * np.int64(weights[k]))
    sums[last] = newest
    return total
