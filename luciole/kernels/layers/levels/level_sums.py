"""The compiled loop of LQ_FULLY_CONNECTED that adds up weights level by level.

Inputs of one row are sorted by level (``sorting``). Their weight bits, 512 outputs and planes in
one row of bits, are counted one above the other (``jit.bitsliced``), so that every weight bit is
touched once, however many bits inputs have. Every level's counts then meet its number.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array, learned_levels
from luciole.kernels import jit
from luciole.kernels.core.memory import Memory, reach
from luciole.kernels.core.registry import NativeStep
from luciole.kernels.jit import LANES, Record, floats, longs
from luciole.kernels.jit.vector import bitsliced
from luciole.kernels.jit.vector.vectors import Floats
from luciole.kernels.layers.levels.encoding import MAX_SELECTED
from luciole.kernels.layers.levels.layer import Ending, LevelsLayer
from luciole.kernels.layers.levels.sorting import FACTORS as SEGMENT_FACTORS
from luciole.kernels.layers.levels.sorting import SEGMENTS, SLACK, SUMMARY, UNIT, most_segments
from luciole.kernels.layers.levels.sorting import X as SORTED
from luciole.kernels.layers.levels.sorting import kernel as sorting_kernel

X, Y, FIRST_ROW, LAST_ROW, FIRST_BLOCK, LAST_BLOCK = range(6)
"""Addresses of input and result, and which rows and blocks of outputs are done: from the first to
before the last.
"""

INPUTS, OUTPUTS, SORT, SORTING, TURNS, WEIGHTS, AHEAD, COUNTS, TOTALS = range(6, 15)
"""Sizes; addresses of the sorting kernel and of its records, one for each of the next field's
number of rows; addresses of the weights, whether they are fetched ahead, and of room for counts
and for all bits' sums.
"""

SCALES, STARTS, OFFSETS = range(15, 18)
"""Addresses of the weights' scales, of what a result begins with, and of the weights' offsets (0:
there are none).
"""

SORTING_BYTES = 128
"""From one sorting record to the next."""


VECTORS = {1: 32, 2: 16, 3: 10, 4: 8}
"""Vectors of outputs in a block, by weight planes: all their bits fit into a row of 512."""

TOGETHER = {1: 4, 2: 4, 3: 2, 4: 2}
"""Vectors of outputs that are finished together, by weight planes: 4 to 8 sums hide each other's
latency.
"""

MOST_TURNS = 16
"""Rows of inputs that are sorted before a block of weights meets them."""

FAR = 1 << 20
"""Bytes of weights above which blocks are fetched ahead."""


LEAST_LANES, LEAST_INPUTS = 600, 256
"""Bits of weights that one input meets, and inputs, from which on the way by level may pay."""


def suits(layer: LevelsLayer) -> bool:
    """Whether a layer can run on this kernel, and is large enough for it."""
    possible = bitsliced.AVAILABLE and layer.encoding.bits <= MAX_SELECTED
    lanes = layer.outputs * layer.weight_planes
    return possible and lanes >= LEAST_LANES and LEAST_INPUTS <= layer.inputs < 1 << 16


_MOST_OFF = {1: 0.4, 2: 0.5, 3: 0.8, 4: 1.4}
"""By input bits, see ``most_off``. On Zen 5 the break-even for one row is 41 % (1 bit) to 80 % (4
bits) of the inputs off the most frequent level; the bound on them that is compared is up to twice
as large. A batch of 1-bit rows always takes less time bit by bit.
"""


def most_off(bits: int, rows: int) -> float:
    """How many inputs, as a share, may at most be off the most frequent level (by the bound of
    ``counting``) for this kernel to be taken.

    Measured at 690x784 and 1024x1024: Zen 5 counts bits nearly as fast as it adds them, so that
    this kernel pays where it leaves out most inputs. Zen 4 counts half as fast and takes less time
    by level from 2 bits on, whatever the inputs.
    """
    if bits == 1:
        return _MOST_OFF[1] if rows == 1 else 0
    return bits if bitsliced.SLOW_COUNTS else _MOST_OFF.get(bits, 0)


def step(layer: LevelsLayer, x: Array, y: Array) -> NativeStep:
    """The kernel on its record."""
    n, memory, planes = layer.inputs, Memory(), layer.weight_planes
    vectors, count = VECTORS[planes], x.size // n
    blocks = -(-layer.outputs // (LANES * vectors))
    packed, totals = _packed(layer, blocks)
    offsets, total = layer.offsets, blocks * vectors
    fields = {
        X: reach(x, 4 * n * count),
        Y: reach(y, 4 * layer.outputs * count),
        FIRST_ROW: 0,
        LAST_ROW: count,
        FIRST_BLOCK: 0,
        LAST_BLOCK: blocks,
        INPUTS: n,
        OUTPUTS: layer.outputs,
        SORT: sorting_kernel(1 << layer.encoding.bits).address,
        SORTING: 0,
        TURNS: max(1, min(MOST_TURNS, count)),
        WEIGHTS: memory.keep(packed, blocks, n + 1, bitsliced.ROW_BYTES),
        AHEAD: packed.nbytes > FAR,
        COUNTS: 0,
        TOTALS: memory.keep(totals, blocks, bitsliced.COUNTERS),
        SCALES: memory.keep(_by_vector(layer.aw, total), total, planes, LANES),
        STARTS: memory.keep(_by_vector(layer.starts, total), total, LANES),
        OFFSETS: 0 if offsets is None else memory.keep(_by_vector(offsets, total), total, LANES),
    }
    record = np.array([fields[k] for k in range(len(fields))], np.int64)
    _give_room(record, layer, memory)
    compiled = kernel(planes, vectors, TOGETHER[planes], *layer.ending)
    return memory.step(compiled.address, record)


def part(layer: LevelsLayer, step: NativeStep, share: tuple[int, int], memory: Memory) -> int:
    """The address of a record that does share i of n of the blocks, with room of its own."""
    record, (place, parts) = step.record.copy(), share
    blocks = int(record[LAST_BLOCK])
    record[[FIRST_BLOCK, LAST_BLOCK]] = blocks * place // parts, blocks * (place + 1) // parts
    _give_room(record, layer, memory)
    return memory.numbers(*record)


def _give_room(record: Array, layer: LevelsLayer, memory: Memory) -> None:
    """Let a record have places of its own for what the kernel writes besides results."""
    segments = most_segments(layer.inputs, 1 << layer.encoding.bits)
    record[SORTING] = _sorting(layer, memory, int(record[TURNS]), segments)
    record[COUNTS] = memory.scratch(segments, bitsliced.COUNTERS // 4)


def _by_vector(array: Array, vectors: int) -> Array:
    """[o, ...] as [vectors, ..., 16], filled up with zeros."""
    padded = np.zeros((vectors * LANES, *array.shape[1:]), np.float32)
    padded[: len(array)] = array
    return np.moveaxis(padded.reshape(vectors, LANES, *array.shape[1:]), 1, -1)


def _packed(layer: LevelsLayer, blocks: int) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """The weights' bits as rows of 64 bytes, [blocks, n + 1, 64], the last row of a block of zeros;
    and how many bits of each lane are set, [blocks, 512].
    """
    rows = np.zeros((blocks, layer.inputs + 1, bitsliced.ROW_BYTES), np.uint8)
    totals = np.zeros((blocks, bitsliced.COUNTERS), np.float32)
    order = [bitsliced.lane(*divmod(k, LANES)) for k in range(bitsliced.COUNTERS)]
    for block in range(blocks):
        bits = _bits(layer, block)
        totals[block] = bits.sum(0)
        moved = np.zeros_like(bits)
        moved[:, order] = bits
        rows[block, :-1] = np.packbits(moved, axis=-1, bitorder="little")
    return rows, totals


def _bits(layer: LevelsLayer, block: int) -> NDArray[np.bool_]:
    """A block's bits, [n, 512], by vector of outputs, plane and output."""
    planes, vectors = layer.weight_planes, VECTORS[layer.weight_planes]
    size = vectors * LANES
    given = layer.binary[block * size : (block + 1) * size]
    padded = np.zeros((size, planes, layer.inputs), np.bool_)
    padded[: len(given)] = learned_levels.unpack(given, layer.inputs)
    parts = padded.reshape(vectors, LANES, planes, layer.inputs).transpose(3, 0, 2, 1)
    bits = np.zeros((layer.inputs, bitsliced.COUNTERS), np.bool_)
    bits[:, : size * planes] = parts.reshape(layer.inputs, -1)
    return bits


def _sorting(layer: LevelsLayer, memory: Memory, turns: int, segments: int) -> int:
    """The address of sorting records, one for each of so many rows."""
    encoding = layer.encoding
    levels = learned_levels.levels(encoding.basis)[0].astype(np.float32)
    count = 1 << encoding.bits
    tables = memory.keep(encoding.thresholds, count - 1), memory.keep(levels, count)
    stride = 2 * (layer.inputs + SLACK)
    records = np.zeros((turns, SORTING_BYTES // 8), np.int64)
    for record in records:
        factors = memory.scratch(4 + segments) + 16
        lists = memory.keep(np.zeros((count, stride), np.uint8), count, stride)
        counts, plan = memory.scratch(2 * count), memory.scratch(8 * segments)
        fields = (0, layer.inputs, *tables, lists, stride, counts, plan, factors)
        record[: len(fields) + 1] = *fields, memory.scratch(2)
    return memory.keep(records, turns, SORTING_BYTES // 8)


@cache
def kernel(
    weight_planes: int, vectors: int, together: int, low: float, high: float, tanh: int
) -> jit.Kernel:
    """The kernel for blocks of ``vectors`` times 16 outputs, ``together`` vectors at a time; the
    last three as in ``layer.ending``.
    """

    @jit.kernel
    def lq_levels(r: Record) -> None:
        row = r[FIRST_ROW]
        while row < r[LAST_ROW]:
            rows = min(r[TURNS], r[LAST_ROW] - row)
            for k in range(rows):
                sorting = r[SORTING] + SORTING_BYTES * k
                longs(sorting)[SORTED] = r[X] + 4 * (row + k) * r[INPUTS]
                jit.call(r[SORT], sorting)
            for block in range(r[FIRST_BLOCK], r[LAST_BLOCK]):
                for k in range(rows):
                    s = longs(r[SORTING] + SORTING_BYTES * k)
                    _count(r, s, block)
                    sums = jit.float_tile(together, weight_planes)
                    shape = (vectors, weight_planes, together)
                    _finish(sums, r, s, block, row + k, shape, (low, high, tanh))
            row += rows

    return lq_levels


@jit.merged
def _count(r: Record, s: Record, block: int) -> None:
    """The counts of every segment of a row for one block."""
    size = bitsliced.ROW_BYTES * (r[INPUTS] + 1)
    base = r[WEIGHTS] + block * size
    ahead = base + size
    for number in range(longs(s[SUMMARY])[0]):
        segment = longs(s[SEGMENTS] + 32 * number)
        counters = bitsliced.no_counts()
        for sign in range(2):
            rows, units = segment[2 * sign], segment[2 * sign + 1]
            while units >= 4:
                counters = bitsliced.add_32_rows(counters, base, rows)
                ahead = _fetch(r, ahead, 4)
                rows += 2 * 4 * UNIT
                units -= 4
            while units > 0:
                counters = bitsliced.add_8_rows(counters, base, rows)
                ahead = _fetch(r, ahead, 1)
                rows += 2 * UNIT
                units -= 1
            if sign == 0:
                counters = bitsliced.complement(counters)
        bitsliced.write_counts(counters, r[COUNTS] + bitsliced.COUNTERS * number)


@jit.merged
def _fetch(r: Record, ahead: int, units: int) -> int:
    """Fetch so many units of the next block, where that pays."""
    if r[AHEAD]:
        for line in range(UNIT * units):
            bitsliced.prefetch(ahead + bitsliced.ROW_BYTES * line)
    return ahead + bitsliced.ROW_BYTES * UNIT * units


@jit.merged
def _finish(
    sums: Floats,
    r: Record,
    s: Record,
    block: int,
    row: int,
    shape: tuple[int, int, int],
    ending: Ending,
) -> None:
    """Results of a block: every segment's counts times its factor, then every plane's sum times its
    scale.
    """
    vectors, weight_planes, together = shape
    low, high, tanh = ending
    outputs, summary = r[OUTPUTS], floats(s[SEGMENT_FACTORS] - 16)
    for vector in range(0, vectors, together):
        place = LANES * (block * vectors + vector)
        lanes = block * bitsliced.COUNTERS + LANES * vector * weight_planes
        sums = bitsliced.totals(sums, r[TOTALS] + 4 * lanes, summary[1], summary[0])
        counts = r[COUNTS] + LANES * vector * weight_planes
        for number in range(longs(s[SUMMARY])[0]):
            factor = s[SEGMENT_FACTORS] + 4 * number
            sums = bitsliced.add_counts(sums, counts + bitsliced.COUNTERS * number, factor)
        scales = r[SCALES] + 4 * weight_planes * place
        results = bitsliced.combine(sums, scales, r[STARTS] + 4 * place)
        if r[OFFSETS]:
            of_inputs = s[SEGMENT_FACTORS] - 8
            results = jit.add_products(results, of_inputs, 4, r[OFFSETS] + 4 * place)
        results = jit.tanh(results) if tanh else results
        y = r[Y] + 4 * (row * outputs + place)
        if place < outputs:
            jit.write(results, low, high, y, 0, outputs - place)
