"""The compiled loop of LQ_FULLY_CONNECTED: a tile of rows times 16 or more outputs is counted in
vector registers, one output per lane, so that no sum runs across lanes.

Weights lie in groups of outputs, [group, word, plane, output]: they are read once for a tile, in
order. A block of rows is encoded at once, so that a group's weights stay at hand for all of them.
Steps in memory are in bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array
from luciole.kernels import jit
from luciole.kernels.core.contract import NativeStep, Stage
from luciole.kernels.core.memory import Memory, reach
from luciole.kernels.core.shares import ranges, stages
from luciole.kernels.jit import LANES, floats
from luciole.kernels.jit.record import Record
from luciole.kernels.jit.vector.bit_lookups import PARTS, WORD_BYTES, as_met
from luciole.kernels.jit.vector.bits import MOST_WORDS
from luciole.kernels.jit.vector.vectors import Ints
from luciole.kernels.layers.levels import level_sums
from luciole.kernels.layers.levels.differing import emptied
from luciole.kernels.layers.levels.encoding import encoding_at
from luciole.kernels.layers.levels.layer import Ending, LevelsLayer
from luciole.kernels.layers.levels.level_sums import LevelSumsRecord, level_sums_at
from luciole.kernels.layers.levels.tiling import Tiling

BLOCK_WORDS = 4096
"""Words of inputs that are kept at hand while a group of weights meets them: 16 KB."""


LEAST_WORK = 20_000
"""Vectors of words that a thread should count at least: 4 us, because meeting takes up to 3."""


class RowsRecord(Record):
    """Rows and groups of outputs, from the first to before the last, the kernels that encode rows
    and that add up by level with their records, and the weights. A tile must fit into the rows.
    """

    x: int
    y: int
    first_row: int
    last_row: int
    first_group: int
    last_group: int
    inputs: int
    outputs: int
    block: int
    """Rows that are encoded at once."""
    encode: int
    encoding: int
    planes: int
    """Room for the words of a block's rows."""
    weights: int
    factors: int
    """Loss of a result by a differing bit."""
    starts: int
    offsets: int
    """The weights' offsets, 0 where there are none."""
    basis: int
    sums: int
    """Room for the factors of the offsets of the weights, for each row of a block."""
    by_level: int
    """The kernel of ``level_sums`` and its record, 0 where it is never taken."""
    level_sums: int
    most_off: int
    """Inputs of a row that may be off the most frequent level for that kernel to be taken."""


def step(layer: LevelsLayer, x: Array, y: Array) -> NativeStep:
    """Make the step of a layer: by ``level_sums``, where that is quicker whatever the inputs, or
    bit by bit, with the kernel of ``level_sums`` for rows that suit it better.
    """
    if level_sums.always(layer, x.size // layer.inputs):
        return level_sums.step(layer, x, y)
    return _Rows(layer, x, y).step()


@dataclass
class _Rows:
    """A layer on ``rows`` rows, and the records of its kernel."""

    layer: LevelsLayer
    x: Array
    y: Array
    memory: Memory = field(default_factory=Memory)

    def __post_init__(self) -> None:
        """Cut the layer into tiles."""
        layer = self.layer
        self.count = self.x.size // layer.inputs
        self.tiling = Tiling.of(layer.encoding.bits, layer.weight_planes, layer.outputs, self.count)
        self.rows = min(self.tiling.most_pixels, max(1, self.count))
        room = self.rows * layer.row * self.tiling.all_planes
        self.block = self.rows * max(1, BLOCK_WORDS // room)

    def step(self) -> NativeStep:
        """Make the step of the kernel on its record."""
        compiled = kernel(self.rows, *self.tiling.shape, *self.layer.ending)
        suits = level_sums.suits(self.layer)
        by_level = level_sums.record(self.layer, self.x, self.y, self.memory) if suits else None
        record = self._record(by_level)

        def split(threads: int) -> list[Stage]:
            return stages(list(self._parts(record, by_level, threads)))

        return self.memory.step(compiled.address, record, split)

    def _record(self, by_level: LevelSumsRecord | None) -> RowsRecord:
        """Make the record for all rows and groups."""
        layer, tiling, keep = self.layer, self.tiling, self.memory.keep
        offsets, group = layer.offsets, (tiling.groups, tiling.lanes)
        most_off = level_sums.most_off(layer.encoding.bits, self.count) * layer.inputs
        return RowsRecord(
            x=reach(self.x, 4 * layer.inputs * self.count),
            y=reach(self.y, 4 * layer.outputs * self.count),
            first_row=0,
            last_row=self.count,
            first_group=0,
            last_group=tiling.groups,
            inputs=layer.inputs,
            outputs=layer.outputs,
            block=self.block,
            encode=layer.encoding.kernel.address,
            **self._weights(),
            starts=keep(tiling.by_group(self._starts()), *group),
            offsets=0 if offsets is None else keep(tiling.by_group(offsets), *group),
            basis=keep(tiling.filled(layer.encoding.basis), tiling.all_planes),
            by_level=0 if by_level is None else level_sums.kernel_of(layer).address,
            most_off=int(most_off),
            **self._room(by_level),
        )

    def _weights(self) -> dict[str, int]:
        """Return fields for the weights' words, and for the factors of differing bits."""
        layer, tiling = self.layer, self.tiling
        planes, lanes = tiling.weight_planes, tiling.lanes
        words = as_met(tiling.by_group(layer.words.transpose(0, 2, 1)))
        factors = tiling.factors(layer.encoding.basis, layer.aw)
        return {
            "weights": self.memory.keep(words, tiling.groups, layer.row, *PARTS, planes, lanes),
            "factors": self.memory.keep(factors, tiling.groups, tiling.all_planes, planes, lanes),
        }

    def _starts(self) -> NDArray[np.float32]:
        """Return the starts of results, with the share of an odd number of products, because
        counters begin at -(n div 2).
        """
        layer = self.layer
        odd = layer.encoding.basis.sum(dtype=np.float64) * layer.aw.sum(1, dtype=np.float64)
        return np.asarray(layer.starts + layer.inputs % 2 * odd, np.float32)

    def _room(self, by_level: LevelSumsRecord | None) -> dict[str, int]:
        """Return fields for the memory that one thread's kernels write besides results."""
        layer, planes, memory = self.layer, self.tiling.all_planes, self.memory
        words = memory.scratch(self.block, layer.row, planes, WORD_BYTES // 4)
        rows = (self.block, layer.inputs)
        return {
            "planes": words,
            "encoding": layer.encoding.record(memory, rows, planes, words),
            "sums": memory.scratch(self.block),
            "level_sums": 0 if by_level is None else memory.record(by_level),
        }

    def _parts(
        self, record: RowsRecord, by_level: LevelSumsRecord | None, threads: int
    ) -> Iterator[RowsRecord]:
        """Yield records that share the rows, or the outputs where there are few rows; none where
        threads do not pay.
        """
        words = self.layer.row * self.layer.weight_planes
        vectors = words * self.layer.encoding.bits * self.tiling.vectors
        if self.count >= 2 * threads * self.rows:
            least = max(self.rows, LEAST_WORK // (vectors * max(self.tiling.groups, 1)))
            for first, last in ranges(self.count, threads, least):
                part = self._part(record, by_level, (0, 1))
                yield part.replace(first_row=first, last_row=last)
            return
        shares = ranges(self.tiling.groups, threads, LEAST_WORK // (vectors * max(self.count, 1)))
        for place, (first, last) in enumerate(shares):
            part = self._part(record, by_level, (place, len(shares)))
            yield part.replace(first_group=first, last_group=last)

    def _part(
        self, record: RowsRecord, by_level: LevelSumsRecord | None, share: tuple[int, int]
    ) -> RowsRecord:
        """Copy a record with memory of its own; by level it does share i of n of the outputs."""
        if by_level is not None:
            by_level = level_sums.part(self.layer, by_level, share, self.memory)
        return record.replace(**self._room(by_level))


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
    """Make the kernel for tiles of this shape; the last three as in ``layer.ending``."""
    lanes = vectors * LANES

    @jit.kernel
    def lq_rows(r: RowsRecord) -> None:
        tile = jit.counters(rows, planes, weight_planes, vectors)
        shape = (planes, passes, weight_planes, lanes)
        ending = (low, high, tanh)
        row = r.first_row
        while row < r.last_row:
            begin = min(row, r.last_row - rows)
            size = min(r.block, r.last_row - begin)
            encoding = encoding_at(r.encoding, 0)
            encoding.x, encoding.rows = r.x + 4 * begin * r.inputs, size
            jit.call(r.encode, r.encoding)
            row = begin + size
            if r.by_level and _off(r, size, planes * passes) <= size * r.most_off:
                sums = level_sums_at(r.level_sums, 0)
                sums.first_row, sums.last_row = begin, row
                jit.call(r.by_level, r.level_sums)
                continue
            if r.offsets:
                _sum_rows(r, size, planes * passes)
            for group in range(r.first_group, r.last_group):
                for k in range(0, size, rows):
                    _group(tile, r, begin, min(k, size - rows), group, shape, ending)

    return lq_rows


@jit.separate
def _ones(r: RowsRecord, row: int, plane: int, planes: int) -> int:
    """Count the set bits of a row's plane."""
    count = (r.inputs + 31) >> 5
    place, ones = row * count * planes + plane, 0
    for w in range(count):
        ones += jit.ones(r.planes, place + w * planes)
    return ones


@jit.separate
def _off(r: RowsRecord, rows: int, planes: int) -> int:
    """Bound how many inputs of ``rows`` rows are not on their row's most frequent level: those that
    differ from most others in some plane.
    """
    off = 0
    for k in range(rows):
        for i in range(planes):
            ones = _ones(r, k, i, planes)
            off += min(ones, r.inputs - ones)
    return off


@jit.separate
def _sum_rows(r: RowsRecord, rows: int, planes: int) -> None:
    """Compute sum_i ax_i (2 popcount(x_i) - n) of each row of words."""
    for k in range(rows):
        total = 0.0
        for i in range(planes):
            total += floats(r.basis)[i] * (2 * _ones(r, k, i, planes) - r.inputs)
        floats(r.sums)[k] = total


@jit.inlined
def _group(
    tile: Ints,
    r: RowsRecord,
    begin: int,
    row: int,
    group: int,
    shape: tuple[int, int, int, int],
    ending: Ending,
) -> None:
    """Compute a group's results for a tile of rows: n - 2 differing = -2 (differing - n div 2) + n
    mod 2, so that counters begin at -(n div 2) and stay small.
    """
    planes, passes, weight_planes, lanes = shape
    low, high, tanh = ending
    n, outputs = r.inputs, r.outputs
    count = (n + 31) >> 5
    word, weights_word = WORD_BYTES * planes * passes, WORD_BYTES * weight_planes * lanes
    weights = r.weights + group * count * weights_word
    factors = r.factors + 4 * group * passes * planes * weight_planes * lanes
    y = r.y + 4 * ((begin + row) * outputs + group * lanes)
    for turn in range(passes):
        counted = jit.fill(tile, -(n >> 1))
        x = r.planes + row * count * word + WORD_BYTES * planes * turn
        few, left = jit.small_counters(counted), MOST_WORDS
        for k in range(count):
            against = weights + k * weights_word
            jit.prefetch_words(tile, against)
            few = jit.xor_popcount(few, x + k * word, count * word, against)
            counted, few, left = emptied(counted, few, left - 1)
        counted = jit.small_added(counted, few)
        if turn == 0:  # not before, as starts would take registers
            chains = jit.begin_chains(tile, r.starts + 4 * group * lanes, 0)
        own = factors + 4 * planes * weight_planes * lanes * turn
        chains = jit.scale_accumulate(chains, counted, own)
    part = jit.joined(chains)
    if r.offsets:
        part = jit.add_products(part, r.sums + 4 * row, 4, r.offsets + 4 * group * lanes)
    part = jit.tanh(part) if tanh else part
    jit.write(part, low, high, y, 4 * outputs, outputs - group * lanes)
