"""The compiled loops of LQ_CONV_2D: inputs to bit planes, windows of bit planes to results.

Addresses are plain integers and steps are in bytes. Plane i of an input word stands ``WORD_BYTES
i`` bytes behind plane 0.
"""

from __future__ import annotations

from functools import cache

from luciole.kernels import jit
from luciole.kernels.jit import LANES, floats
from luciole.kernels.jit.record import Record, reader
from luciole.kernels.jit.vector.bit_lookups import WORD_BYTES
from luciole.kernels.jit.vector.bits import MOST_WORDS
from luciole.kernels.jit.vector.vectors import Ints
from luciole.kernels.layers.geometry.spans import Inside, Span
from luciole.kernels.layers.levels.differing import emptied
from luciole.kernels.layers.levels.encoding import encoding_at
from luciole.kernels.layers.levels.layer import Ending


class ConvRecord(Record):
    """Images, the kernel that encodes inputs and its record, the records of the two below (the
    first 0 where nobody asks), and tables of ``Span``.
    """

    x: int
    y: int
    images: int
    x_image: int
    y_image: int
    encode: int
    encoding: int
    sums: int
    counting: int
    tiles: int
    tile_count: int
    single: int
    single_count: int


class SumsRecord(Record):
    """Bit planes, what each is worth, room for a pixel's and a window's sum, and for rows and
    columns of windows the ``Inside`` of each.
    """

    planes: int
    basis: int
    pixels: int
    depth: int
    """Words of a plane of a pixel."""
    channels: int
    totals: int
    sums: int
    rows: int
    row_count: int
    columns: int
    column_count: int
    width: int
    row_dilation: int
    column_dilation: int


class CountingRecord(Record):
    """Bit planes of inputs and weights, and the worth of counts."""

    planes: int
    pixel: int
    """Bytes from pixel to pixel, and from tap to tap down and across."""
    down: int
    across: int
    depth: int
    """Words of a plane of a pixel."""
    channels: int
    joined: int
    """Whether taps of a row are neighbours in memory."""
    weights: int
    columns: int
    """Columns of the kernel, and all of its taps."""
    taps: int
    factors: int
    starts: int
    offsets: int
    """The weights' offsets, 0 where there are none, and the windows' sums that they meet."""
    sums: int
    outputs: int
    groups: int


_sums_at, _counting_at = reader(SumsRecord), reader(CountingRecord)
_span_at, _inside_at = reader(Span), reader(Inside)


@cache
def kernel(
    pixels: int,
    planes: int,
    weight_planes: int,
    vectors: int,
    passes: int,
    low: float,
    high: float,
    tanh: int,
) -> jit.Kernel:
    """Make the kernel for tiles of this shape; the last three as in ``layer.ending``."""

    @jit.kernel
    def lq_conv_2d(r: ConvRecord) -> None:
        tile = jit.counters(pixels, planes, weight_planes, vectors)
        single = jit.counters(1, planes, weight_planes, vectors)
        c = _counting_at(r.counting, 0)
        shape = (planes, passes, weight_planes, vectors * LANES)
        ending = (low, high, tanh)
        for image in range(r.images):
            y = r.y + image * r.y_image
            encoding_at(r.encoding, 0).x = r.x + image * r.x_image
            jit.call(r.encode, r.encoding)
            if r.sums:
                _sum_windows(_sums_at(r.sums, 0), planes * passes)
            for group in range(c.groups):
                _spans(tile, c, group, r.tiles, r.tile_count, y, shape, ending)
                _spans(single, c, group, r.single, r.single_count, y, shape, ending)

    return lq_conv_2d


@jit.separate
def _sum_windows(s: SumsRecord, planes: int) -> None:
    """Compute for each window sum_i ax_i (2 popcount(x_i) - n), x_i and n over the taps inside."""
    ax, totals, sums = floats(s.basis), floats(s.totals), floats(s.sums)
    for pixel in range(s.pixels):
        total = 0.0
        for i in range(planes):
            ones = 0
            for w in range(s.depth):
                ones += jit.ones(s.planes, (pixel * s.depth + w) * planes + i)
            total += ax[i] * (2 * ones - s.channels)
        totals[pixel] = total
    for r in range(s.row_count):
        down = _inside_at(s.rows, r)
        for c in range(s.column_count):
            across = _inside_at(s.columns, c)
            total = 0.0
            for ky in range(down.count):
                row = (down.first + ky * s.row_dilation) * s.width
                for kx in range(across.count):
                    total += totals[row + across.first + kx * s.column_dilation]
            sums[r * s.column_count + c] = total


@jit.inlined
def _spans(
    tile: Ints,
    c: CountingRecord,
    group: int,
    table: int,
    count: int,
    y: int,
    shape: tuple[int, int, int, int],
    ending: Ending,
) -> None:
    """Compute one group of outputs of every span in a table, see ``spans.Spans``."""
    step = 4 * c.outputs
    y += 4 * group * shape[3]
    for k in range(count):
        span = _span_at(table, k)
        x, to = c.planes + span.x * c.pixel, y + span.y * step
        sums = c.sums + 4 * span.y
        for _ in range(span.tiles):
            _tile(tile, c, group, span, x, to, sums, shape, ending)
            x += span.x_tile * c.pixel
            to += span.y_tile * step
            sums += 4 * span.y_tile


@jit.inlined
def _tile(
    tile: Ints,
    c: CountingRecord,
    group: int,
    span: Span,
    x: int,
    y: int,
    sums: int,
    shape: tuple[int, int, int, int],
    ending: Ending,
) -> None:
    """Compute the results of one tile: n - 2 differing = -2 (differing - n div 2) + n mod 2, so
    that counters begin at -(n div 2) and stay small.
    """
    planes, passes, weight_planes, lanes = shape
    low, high, tanh = ending
    n = span.rows * span.columns * c.channels
    outputs = c.outputs
    factors = c.factors + 4 * group * passes * planes * weight_planes * lanes
    start = c.starts + 4 * (span.case * c.groups + group) * lanes
    for turn in range(passes):
        filled = jit.fill(tile, -(n >> 1))
        counted = _counted(filled, c, group, span, x + WORD_BYTES * planes * turn, shape)
        if turn == 0:  # not before, as starts would take registers
            chains = jit.begin_chains(tile, start, 0)
        own = factors + 4 * planes * weight_planes * lanes * turn
        chains = jit.scale_accumulate(chains, counted, own)
    part = jit.joined(chains)
    if c.offsets:
        part = jit.add_products(part, sums, 4 * span.y_pixel, c.offsets + 4 * group * lanes)
    part = jit.tanh(part) if tanh else part
    jit.write(part, low, high, y, 4 * span.y_pixel * outputs, outputs - group * lanes)


@jit.inlined
def _counted(
    tile: Ints,
    c: CountingRecord,
    group: int,
    span: Span,
    x: int,
    shape: tuple[int, int, int, int],
) -> Ints:
    """Add up a tile's differing bits over the taps inside. Taps of a row that are neighbours in
    memory are one loop.
    """
    planes, passes, weight_planes, lanes = shape
    word, weights_word = WORD_BYTES * planes * passes, WORD_BYTES * weight_planes * lanes
    tap = c.depth * weights_word
    weights = c.weights + (group * c.taps + span.tap) * tap
    columns, length = (1, span.columns * c.depth) if c.joined else (span.columns, c.depth)
    step = span.x_pixel * c.pixel
    few, left = jit.small_counters(tile), MOST_WORDS
    for ky in range(span.rows):
        for kx in range(columns):
            at = x + ky * c.down + kx * c.across
            against = weights + (ky * c.columns + kx) * tap
            for k in range(length):
                few = jit.xor_popcount(few, at + k * word, step, against + k * weights_word)
                tile, few, left = emptied(tile, few, left - 1)
    return jit.small_added(tile, few)
