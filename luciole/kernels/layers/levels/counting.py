"""The compiled loop of LQ_FULLY_CONNECTED: a tile of rows times 16 or more outputs is counted in
vector registers, one output per lane, so that no sum runs across lanes.

Weights lie in groups of outputs, [group, word, plane, output]: they are read once for a tile, in
order. A block of rows is encoded at once, so that a group's weights stay at hand for all of them.
Steps in memory are in bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array
from luciole.kernels import jit
from luciole.kernels.core.allocation import placed
from luciole.kernels.core.memory import Memory, reach
from luciole.kernels.core.registry import NativeStep, ranges
from luciole.kernels.jit import LANES, Record, floats, longs, popcount, words
from luciole.kernels.jit.vector.vectors import Ints
from luciole.kernels.layers.levels import level_sums
from luciole.kernels.layers.levels.encoding import ROWS as ENCODED_ROWS
from luciole.kernels.layers.levels.encoding import X as ENCODED
from luciole.kernels.layers.levels.layer import Ending, LevelsLayer
from luciole.kernels.layers.levels.tiling import Tiling

X, Y, FIRST_ROW, LAST_ROW, FIRST_GROUP, LAST_GROUP = range(6)
"""Addresses of input and result, and which rows and groups of outputs are done: from the first to
before the last. A tile must fit into the rows.
"""

INPUTS, OUTPUTS, BLOCK, ENCODE, ENCODING, PLANES, WEIGHTS, FACTORS, STARTS = range(6, 15)
PARTIAL = 15
"""Sizes, and how many rows are encoded at once; addresses of the encoding kernel and its record,
room for a block's words, weights, what a differing bit takes away, what a result begins with, and
room for a tile's unfinished results.
"""

OFFSETS, BASIS, SUMS = range(16, 19)
"""Addresses of the weights' offsets (0: there are none), the input's basis and room for a block's
sums.
"""

BY_LEVEL, BY_LEVEL_RECORD, MOST_OFF = range(19, 22)
"""The kernel of ``level_sums`` (0: none) and its record, and how many inputs of a row may be off
the most frequent level for it to be taken.
"""

FIELDS = 22
Integers = NDArray[np.int64]

BLOCK_WORDS = 4096
"""Words of inputs that are kept at hand while a group of weights meets them: 16 KB."""


LEAST_WORK = 20_000
"""Vectors of words that a thread should count at least: 4 us, because meeting takes up to 3."""


def step(layer: LevelsLayer, x: Array, y: Array) -> NativeStep:
    """The kernel on its record, and with it that of ``level_sums`` for rows that suit it better."""
    count, memory = x.size // layer.inputs, Memory()
    tiling = Tiling.of(layer.encoding.bits, layer.weight_planes, layer.outputs, count)
    rows = min(tiling.most_pixels, max(1, count))
    record = _record(layer, tiling, rows, memory)
    record[X], record[Y] = reach(x, 4 * layer.inputs * count), reach(y, 4 * layer.outputs * count)
    record[LAST_ROW] = count
    by_level = level_sums.step(layer, x, y) if level_sums.suits(layer) else None
    if by_level is not None:
        memory.arrays += by_level.owns
        record[[BY_LEVEL, BY_LEVEL_RECORD]] = by_level.address, memory.numbers(*by_level.record)
        record[MOST_OFF] = int(level_sums.most_off(layer.encoding.bits, count) * layer.inputs)
    compiled = kernel(rows, *tiling.shape, *layer.ending)

    def split(threads: int) -> list[Array]:
        return _Parts(layer, tiling, rows, by_level, memory).records(record, threads)

    return memory.step(compiled.address, record, split)


def _record(layer: LevelsLayer, tiling: Tiling, rows: int, memory: Memory) -> Integers:
    """What does not depend on where inputs and results are."""
    basis, words = layer.encoding.basis, layer.words
    odd = basis.sum(dtype=np.float64) * layer.aw.sum(1, dtype=np.float64)
    starts = (layer.starts + layer.inputs % 2 * odd).astype(np.float32)
    factors = tiling.factors(basis, layer.aw)
    offsets, block = layer.offsets, (tiling.weight_planes, tiling.lanes)
    weights = tiling.by_group(words.transpose(0, 2, 1))
    room, group = rows * layer.row * tiling.all_planes, (tiling.groups, tiling.lanes)
    fields = {
        LAST_GROUP: tiling.groups,
        INPUTS: layer.inputs,
        OUTPUTS: layer.outputs,
        BLOCK: rows * max(1, BLOCK_WORDS // room),
        ENCODE: layer.encoding.kernel.address,
        WEIGHTS: memory.keep(weights, tiling.groups, layer.row, *block),
        FACTORS: memory.keep(factors, tiling.groups, tiling.all_planes, *block),
        STARTS: memory.keep(tiling.by_group(starts), *group),
        OFFSETS: 0 if offsets is None else memory.keep(tiling.by_group(offsets), *group),
        BASIS: memory.keep(tiling.filled(basis), tiling.all_planes),
    }
    record = np.zeros(FIELDS, np.int64)
    record[list(fields)] = list(fields.values())
    _give_room(record, layer, tiling, rows, memory)
    return record


def _give_room(
    record: Integers, layer: LevelsLayer, tiling: Tiling, rows: int, memory: Memory
) -> None:
    """Let a record have places of its own for what a kernel writes besides results."""
    block, planes = int(record[BLOCK]), tiling.all_planes
    words = memory.scratch(block, layer.row, planes)
    record[PLANES] = words
    record[ENCODING] = layer.encoding.record(memory, (block, layer.inputs), planes, words)
    record[PARTIAL] = memory.scratch(rows, tiling.lanes)
    record[SUMS] = memory.scratch(block)


@dataclass(frozen=True)
class _Parts:
    """Records that share a layer's rows, or its outputs where there are few rows."""

    layer: LevelsLayer
    tiling: Tiling
    rows: int
    by_level: NativeStep | None
    memory: Memory

    def records(self, record: Integers, threads: int) -> list[Array]:
        """One for each thread, none where it does not pay."""
        count, groups = int(record[LAST_ROW]), int(record[LAST_GROUP])
        words = self.layer.row * self.layer.weight_planes
        vectors = words * self.layer.encoding.bits * self.tiling.vectors
        by_rows = count >= 2 * threads * self.rows
        if by_rows:
            least = max(self.rows, LEAST_WORK // (vectors * max(groups, 1)))
            parts = _shared(record, FIRST_ROW, count, threads, least)
        else:
            least = LEAST_WORK // (vectors * max(count, 1))
            parts = _shared(record, FIRST_GROUP, groups, threads, least)
        for place, part in enumerate(parts):
            self._give_room(part, (0, 1) if by_rows else (place, len(parts)))
        return parts

    def _give_room(self, part: Integers, share: tuple[int, int]) -> None:
        _give_room(part, self.layer, self.tiling, self.rows, self.memory)
        if self.by_level is not None:
            record = level_sums.part(self.layer, self.by_level, share, self.memory)
            part[BY_LEVEL_RECORD] = record


def _shared(record: Integers, begin: int, count: int, threads: int, least: int) -> list[Array]:
    """Copies of a record that share what is counted from one field to before the next one."""
    copies = []
    for share in ranges(count, threads, least):
        copies.append(placed(record))
        copies[-1][[begin, begin + 1]] = share
    return copies


@cache
def kernel(
    rows: int,
    planes: int,
    weight_planes: int,
    vectors: int,
    passes: int,
    low: float,
    high: float,
    tanh: int,
) -> jit.Kernel:
    """The kernel for tiles of this shape; the last three as in ``layer.ending``."""
    lanes = vectors * LANES

    @jit.kernel
    def lq_rows(r: Record) -> None:
        tile = jit.counters(rows, planes, weight_planes, vectors)
        shape = (planes, passes, weight_planes, lanes)
        ending = (low, high, tanh)
        row = r[FIRST_ROW]
        while row < r[LAST_ROW]:
            begin = min(row, r[LAST_ROW] - rows)
            size = min(r[BLOCK], r[LAST_ROW] - begin)
            longs(r[ENCODING])[ENCODED] = r[X] + 4 * begin * r[INPUTS]
            longs(r[ENCODING])[ENCODED_ROWS] = size
            jit.call(r[ENCODE], r[ENCODING])
            row = begin + size
            if r[BY_LEVEL] and _off(r, size, planes * passes) <= size * r[MOST_OFF]:
                longs(r[BY_LEVEL_RECORD])[level_sums.FIRST_ROW] = begin
                longs(r[BY_LEVEL_RECORD])[level_sums.LAST_ROW] = row
                jit.call(r[BY_LEVEL], r[BY_LEVEL_RECORD])
                continue
            if r[OFFSETS]:
                _sum_rows(r, size, planes * passes)
            for group in range(r[FIRST_GROUP], r[LAST_GROUP]):
                for k in range(0, size, rows):
                    _group(tile, r, begin, min(k, size - rows), group, shape, ending)

    return lq_rows


@jit.inline
def _ones(r: Record, row: int, plane: int, planes: int) -> int:
    """How many bits of a row's plane are set."""
    count = (r[INPUTS] + 31) >> 5
    place, ones = row * count * planes + plane, 0
    for w in range(count):
        ones += int(popcount(words(r[PLANES])[place + w * planes]))
    return ones


@jit.inline
def _off(r: Record, rows: int, planes: int) -> int:
    """A bound on how many inputs of so many rows are not on their row's most frequent level: those
    that differ from most others in some plane.
    """
    off = 0
    for k in range(rows):
        for i in range(planes):
            ones = _ones(r, k, i, planes)
            off += min(ones, r[INPUTS] - ones)
    return off


@jit.inline
def _sum_rows(r: Record, rows: int, planes: int) -> None:
    """sum_i ax_i (2 popcount(x_i) - n) of each row of words."""
    for k in range(rows):
        total = 0.0
        for i in range(planes):
            total += floats(r[BASIS])[i] * (2 * _ones(r, k, i, planes) - r[INPUTS])
        floats(r[SUMS])[k] = total


@jit.merged
def _group(
    tile: Ints,
    r: Record,
    begin: int,
    row: int,
    group: int,
    shape: tuple[int, int, int, int],
    ending: Ending,
) -> None:
    """A group's results for a tile of rows: n - 2 differing = -2 (differing - n div 2) + n mod 2,
    so that counters begin at -(n div 2) and stay small.
    """
    planes, passes, weight_planes, lanes = shape
    low, high, tanh = ending
    n, outputs = r[INPUTS], r[OUTPUTS]
    count = (n + 31) >> 5
    word, weights_word = 4 * planes * passes, 4 * weight_planes * lanes
    weights = r[WEIGHTS] + group * count * weights_word
    factors = r[FACTORS] + 4 * group * passes * planes * weight_planes * lanes
    y = r[Y] + 4 * ((begin + row) * outputs + group * lanes)
    for turn in range(passes):
        counted = jit.fill(tile, -(n >> 1))
        x = r[PLANES] + row * count * word + 4 * planes * turn
        for k in range(count):
            against = weights + k * weights_word
            jit.prefetch_words(tile, against)
            counted = jit.count(counted, x + k * word, count * word, against)
        if turn == 0:
            part = jit.weigh(counted, factors, r[STARTS] + 4 * group * lanes, 0)
        else:
            more = factors + 4 * planes * weight_planes * lanes * turn
            part = jit.weigh(counted, more, r[PARTIAL], 4 * lanes)
        if turn == 0 and r[OFFSETS]:
            part = jit.add_products(part, r[SUMS] + 4 * row, 4, r[OFFSETS] + 4 * group * lanes)
        if turn < passes - 1:
            jit.write(part, -np.inf, np.inf, r[PARTIAL], 4 * lanes, lanes)
        else:
            part = jit.tanh(part) if tanh else part
            jit.write(part, low, high, y, 4 * outputs, outputs - group * lanes)
