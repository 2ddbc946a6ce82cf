"""The compiled loop of LQ_FULLY_CONNECTED that adds up weights level by level.

Inputs of one row are sorted by level (``sorting``). Their weight bits, those of 512 or 256 outputs
and planes in one row, are counted one above the other (``jit.bitsliced``), so that every weight bit
is touched once, however many bits inputs have. Every level's counts then meet its number.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array, learned_levels
from luciole.kernels import jit
from luciole.kernels.core.contract import NativeStep, Stage
from luciole.kernels.core.memory import Memory, reach
from luciole.kernels.core.shares import ranges, stages
from luciole.kernels.jit import LANES
from luciole.kernels.jit.record import Record, reader
from luciole.kernels.jit.vector import bitsliced
from luciole.kernels.jit.vector.bit_lookups import LOOKS_UP
from luciole.kernels.jit.vector.vectors import Floats
from luciole.kernels.layers.levels.encoding import MAX_SELECTED
from luciole.kernels.layers.levels.layer import Ending, LevelsLayer
from luciole.kernels.layers.levels.sorting import (
    SLACK,
    TOTAL,
    UNIT,
    Segment,
    SortingRecord,
    Summary,
    most_segments,
    segment_at,
    summary_at,
)
from luciole.kernels.layers.levels.sorting import kernel as sorting_kernel


class LevelSumsRecord(Record):
    """Rows and blocks of outputs, from the first to before the last, the kernel that sorts rows and
    its records, and the weights.
    """

    x: int
    y: int
    first_row: int
    last_row: int
    first_block: int
    last_block: int
    inputs: int
    outputs: int
    sort: int
    sorting: int
    """A table of ``SortingRecord``, one for each of the rows that are sorted at once."""
    turns: int
    """How many those are."""
    weights: int
    ahead: int
    """Whether blocks of weights are fetched ahead."""
    counts: int
    """Room for a byte for each counter and segment."""
    totals: int
    """How many bits of each lane of the weights are set."""
    scales: int
    starts: int
    offsets: int
    """The weights' offsets, 0 where there are none."""


SORTING_BYTES = SortingRecord.layout.itemsize

_sorting_at = reader(SortingRecord)
level_sums_at = reader(LevelSumsRecord)

VECTORS = {planes: bitsliced.COUNTERS // (LANES * planes) for planes in (1, 2, 3, 4)}
"""Vectors of outputs in a block, by weight planes: all their bits fit into a row."""

TOGETHER = {1: 4, 2: 4, 3: 2, 4: 2} if bitsliced.WIDE else {1: 4, 2: 2, 3: 1, 4: 1}
"""Vectors of outputs that are finished together, by weight planes: 4 to 8 sums hide each other's
latency, and fit into registers.
"""

MOST_TURNS = 16
"""Rows of inputs that are sorted before a block of weights meets them."""

LEAST_WORK = 8_000
"""Rows of bits that a thread should add up at least: some 4 us, because meeting takes up to 3."""

FAR = 1 << 20
"""Bytes of weights above which blocks are fetched ahead."""

LEAST_LANES, LEAST_INPUTS = (600, 256) if bitsliced.WIDE or LOOKS_UP else (128, 100)
"""Bits of weights that one input meets, and inputs, from which on the way by level may pay."""


def suits(layer: LevelsLayer) -> bool:
    """Return whether a layer can run on this kernel, and is large enough for it."""
    possible = layer.encoding.bits <= MAX_SELECTED
    lanes = layer.outputs * layer.weight_planes
    return possible and lanes >= LEAST_LANES and LEAST_INPUTS <= layer.inputs < 1 << 16


_MOST_OFF = {1: 0.4, 2: 0.5, 3: 0.8, 4: 1.4}
"""By input bits, see ``most_off``. On Zen 5 the break-even for one row is 41 % (1 bit) to 80 % (4
bits) of the inputs off the most frequent level; the bound on them that is compared is up to twice
as large. A batch of 1-bit rows always takes less time bit by bit there; with AVX2 where its inputs
are mixed.
"""


def most_off(bits: int, rows: int) -> float:
    """Return how many inputs, as a share, may at most be off the most frequent level (by the bound
    of ``counting``) for this kernel to be taken.

    Measured at 690x784 and 1024x1024: Zen 5 counts bits nearly as fast as it adds them, so that
    this kernel pays where it leaves out most inputs. Zen 4 counts half as fast and takes less time
    by level from 2 bits on, whatever the inputs.
    """
    if bits == 1:
        return _MOST_OFF[1] if rows == 1 or not bitsliced.WIDE else 0
    return _MOST_OFF.get(bits, 0)


def always(layer: LevelsLayer, rows: int) -> bool:
    """Return whether this kernel takes less time whatever the inputs: where no instruction counts
    the bits of a vector, or one that is slow, and inputs have 2 bits or more. Bit by bit costs as
    much for 1 bit, where bits are looked up, and less in a batch (784x690 on Zen 5, AVX2).
    """
    if layer.encoding.bits == 1:
        slow = not bitsliced.WIDE and (rows == 1 or not LOOKS_UP)
    else:
        slow = not bitsliced.WIDE or bitsliced.SLOW_COUNTS
    return slow and suits(layer)


def step(layer: LevelsLayer, x: Array, y: Array) -> NativeStep:
    """Make the step of a layer all of whose rows are added up by level."""
    memory = Memory()
    whole = record(layer, x, y, memory)

    def split(threads: int) -> list[Stage]:
        return stages(list(_parts(layer, whole, threads, memory)))

    return memory.step(kernel_of(layer).address, whole, split)


def _parts(
    layer: LevelsLayer, whole: LevelSumsRecord, threads: int, memory: Memory
) -> Iterator[LevelSumsRecord]:
    """Yield records that share the rows, or the outputs where there are few rows; none where
    threads do not pay.
    """
    rows, blocks = whole.last_row, whole.last_block
    if rows >= 2 * threads:
        for first, last in ranges(rows, threads, -(-LEAST_WORK // (layer.inputs * max(blocks, 1)))):
            part_ = part(layer, whole, (0, 1), memory)
            yield part_.replace(first_row=first, last_row=last)
        return
    shares = ranges(blocks, threads, -(-LEAST_WORK // (layer.inputs * max(rows, 1))))
    for place in range(len(shares)):
        yield part(layer, whole, (place, len(shares)), memory)


def kernel_of(layer: LevelsLayer) -> jit.Kernel:
    """Return the kernel for a layer."""
    planes = layer.weight_planes
    return kernel(planes, VECTORS[planes], TOGETHER[planes], *layer.ending)


def record(layer: LevelsLayer, x: Array, y: Array, memory: Memory) -> LevelSumsRecord:
    """Make the record for all rows and blocks."""
    n, planes, count = layer.inputs, layer.weight_planes, x.size // layer.inputs
    blocks = -(-layer.outputs // (LANES * VECTORS[planes]))
    packed, totals = _packed(layer, blocks)
    offsets, vectors = layer.offsets, blocks * VECTORS[planes]
    turns, keep = max(1, min(MOST_TURNS, count)), memory.keep
    return LevelSumsRecord(
        x=reach(x, 4 * n * count),
        y=reach(y, 4 * layer.outputs * count),
        first_row=0,
        last_row=count,
        first_block=0,
        last_block=blocks,
        inputs=n,
        outputs=layer.outputs,
        sort=sorting_kernel(1 << layer.encoding.bits).address,
        turns=turns,
        weights=keep(packed, blocks, n + 1, bitsliced.ROW_BYTES),
        ahead=int(packed.nbytes > FAR),
        totals=keep(totals, blocks, bitsliced.COUNTERS),
        scales=keep(_by_vector(layer.aw, vectors), vectors, planes, LANES),
        starts=keep(_by_vector(layer.starts, vectors), vectors, LANES),
        offsets=0 if offsets is None else keep(_by_vector(offsets, vectors), vectors, LANES),
        **_room(layer, turns, memory),
    )


def part(
    layer: LevelsLayer, whole: LevelSumsRecord, share: tuple[int, int], memory: Memory
) -> LevelSumsRecord:
    """Copy a record for share i of n of the blocks, with memory of its own."""
    blocks, (place, parts) = whole.last_block, share
    first, last = blocks * place // parts, blocks * (place + 1) // parts
    return whole.replace(first_block=first, last_block=last, **_room(layer, whole.turns, memory))


def _room(layer: LevelsLayer, turns: int, memory: Memory) -> dict[str, int]:
    """Return fields for the memory that the kernel writes besides results."""
    segments = most_segments(layer.inputs, 1 << layer.encoding.bits)
    return {
        "sorting": _sorting(layer, memory, turns, segments),
        "counts": memory.scratch(segments, bitsliced.COUNTERS // 4),
    }


def _by_vector(array: Array, vectors: int) -> Array:
    """Lay [o, ...] out as [vectors, ..., 16], filled up with zeros."""
    padded = np.zeros((vectors * LANES, *array.shape[1:]), np.float32)
    padded[: len(array)] = array
    return np.moveaxis(padded.reshape(vectors, LANES, *array.shape[1:]), 1, -1)


def _packed(layer: LevelsLayer, blocks: int) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Pack the weights' bits as rows of bytes, [blocks, n + 1, ROW_BYTES], the last row of a block
    of zeros; and count the set bits of each lane, [blocks, COUNTERS].
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
    """Unpack a block's bits, [n, COUNTERS], by vector of outputs, plane and output."""
    planes, vectors = layer.weight_planes, VECTORS[layer.weight_planes]
    size = vectors * LANES
    packed = layer.binary[block * size : (block + 1) * size]
    padded = np.zeros((size, planes, layer.inputs), np.bool_)
    padded[: len(packed)] = learned_levels.unpack(packed, layer.inputs)
    parts = padded.reshape(vectors, LANES, planes, layer.inputs).transpose(3, 0, 2, 1)
    bits = np.zeros((layer.inputs, bitsliced.COUNTERS), np.bool_)
    bits[:, : size * planes] = parts.reshape(layer.inputs, -1)
    return bits


def _sorting(layer: LevelsLayer, memory: Memory, turns: int, segments: int) -> int:
    """Keep a table of sorting records, one for each of ``turns`` rows, and return its address."""
    encoding = layer.encoding
    levels = learned_levels.levels(encoding.basis)[0].astype(np.float32)
    count = 1 << encoding.bits
    thresholds = memory.keep(encoding.thresholds, count - 1)
    values = memory.keep(levels, count)
    stride = 2 * (layer.inputs + SLACK)
    records = [
        SortingRecord(
            x=0,
            inputs=layer.inputs,
            thresholds=thresholds,
            levels=values,
            lists=memory.keep(np.zeros((count, stride), np.uint8), count, stride),
            stride=stride,
            counts=memory.scratch(2 * count),
            segments=memory.room_for(Segment, segments),
            factors=memory.scratch(segments),
            summary=memory.room_for(Summary),
        )
        for _ in range(turns)
    ]
    return memory.table(records, SortingRecord)


@cache
def kernel(
    weight_planes: int, vectors: int, together: int, low: float, high: float, tanh: int
) -> jit.Kernel:
    """Make the kernel for blocks of ``vectors`` times 16 outputs, ``together`` vectors at a time;
    the last three as in ``layer.ending``.
    """

    @jit.kernel
    def lq_levels(r: LevelSumsRecord) -> None:
        row = r.first_row
        while row < r.last_row:
            rows = min(r.turns, r.last_row - row)
            for k in range(rows):
                _sorting_at(r.sorting, k).x = r.x + 4 * (row + k) * r.inputs
                jit.call(r.sort, r.sorting + SORTING_BYTES * k)
            for block in range(r.first_block, r.last_block):
                for k in range(rows):
                    s = _sorting_at(r.sorting, k)
                    _count(r, s, block)
                    sums = jit.float_tile(together, weight_planes)
                    shape = (vectors, weight_planes, together)
                    _finish(sums, r, s, block, row + k, shape, (low, high, tanh))
            row += rows

    return lq_levels


@jit.inlined
def _count(r: LevelSumsRecord, s: SortingRecord, block: int) -> None:
    """Count the bits of every segment of a row for one block."""
    size = bitsliced.ROW_BYTES * (r.inputs + 1)
    base = r.weights + block * size
    ahead = base + size
    for number in range(summary_at(s.summary, 0).segments):
        segment = segment_at(s.segments, number)
        counters = bitsliced.no_counts()
        for sign in range(2):
            rows = segment.added if sign else segment.subtracted
            units = segment.added_units if sign else segment.subtracted_units
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
        bitsliced.write_counts(counters, r.counts + bitsliced.COUNTERS * number)


@jit.inlined
def _fetch(r: LevelSumsRecord, ahead: int, units: int) -> int:
    """Fetch ``units`` units of the next block, where that pays."""
    if r.ahead:
        for line in range(UNIT * units):
            bitsliced.prefetch(ahead + bitsliced.ROW_BYTES * line)
    return ahead + bitsliced.ROW_BYTES * UNIT * units


@jit.inlined
def _finish(
    sums: Floats,
    r: LevelSumsRecord,
    s: SortingRecord,
    block: int,
    row: int,
    shape: tuple[int, int, int],
    ending: Ending,
) -> None:
    """Compute the results of a block: every segment's counts times its factor, then every plane's
    sum times its scale.
    """
    vectors, weight_planes, together = shape
    low, high, tanh = ending
    outputs, summary = r.outputs, summary_at(s.summary, 0)
    for vector in range(0, vectors, together):
        place = LANES * (block * vectors + vector)
        lanes = block * bitsliced.COUNTERS + LANES * vector * weight_planes
        sums = bitsliced.totals(sums, r.totals + 4 * lanes, summary.of_all, summary.start)
        counts = r.counts + LANES * vector * weight_planes
        for number in range(summary.segments):
            factor = s.factors + 4 * number
            sums = bitsliced.add_counts(sums, counts + bitsliced.COUNTERS * number, factor)
        scales = r.scales + 4 * weight_planes * place
        results = bitsliced.combine(sums, scales, r.starts + 4 * place)
        if r.offsets:
            total = s.summary + TOTAL
            results = jit.add_products(results, total, 4, r.offsets + 4 * place)
        results = jit.tanh(results) if tanh else results
        y = r.y + 4 * (row * outputs + place)
        if place < outputs:
            jit.write(results, low, high, y, 0, outputs - place)
