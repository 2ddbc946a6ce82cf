"""The compiled loops of LQ_CONV_2D: inputs to bit planes, windows of bit planes to results.

Addresses are plain integers and steps are in bytes. The records ``s`` (sums) and ``c`` (counting)
are written, and their fields named, by the methods of ``lq_conv_2d._Layer``; a span's fields are
those of ``spans.Spans``. Plane i of an input word stands ``4 i`` bytes behind plane 0.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from luciole.kernels import jit
from luciole.kernels.jit import LANES, Record, floats, longs, popcount, words
from luciole.kernels.layers.spans import SPAN_FIELDS
from luciole.kernels.learned.lq_encoding import X as ENCODED


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
    """The kernel for tiles of this shape; the last three as in ``lq_layer.ending``."""

    @jit.kernel
    def lq_conv_2d(r: Record) -> None:
        tile = jit.counters(pixels, planes, weight_planes, vectors)
        single = jit.counters(1, planes, weight_planes, vectors)
        c = longs(r[8])
        shape = (planes, passes, weight_planes, vectors * LANES)
        ending = (low, high, tanh)
        for image in range(r[2]):
            y = r[1] + image * r[4]
            longs(r[6])[ENCODED] = r[0] + image * r[3]
            jit.call(r[5], r[6])
            if r[7]:
                _sum_windows(longs(r[7]), planes * passes)
            for group in range(c[15]):
                _spans(tile, c, group, r[9], r[10], y, shape, ending)
                _spans(single, c, group, r[11], r[12], y, shape, ending)

    return lq_conv_2d


@jit.inline
def _sum_windows(s: Record, planes: int) -> None:
    """For each window sum_i ax_i (2 popcount(x_i) - n), x_i and n over the taps inside."""
    ax, totals, sums = floats(s[1]), floats(s[5]), floats(s[6])
    for pixel in range(s[2]):
        total = 0.0
        for i in range(planes):
            ones = 0
            for w in range(s[3]):
                ones += popcount(words(s[0])[(pixel * s[3] + w) * planes + i])
            total += ax[i] * (2 * np.int64(ones) - s[4])
        totals[pixel] = total
    rows, columns, width = longs(s[7]), longs(s[9]), s[11]
    for r in range(s[8]):
        for c in range(s[10]):
            total = 0.0
            for ky in range(rows[2 * r + 1]):
                row = (rows[2 * r] + ky * s[12]) * width
                for kx in range(columns[2 * c + 1]):
                    total += totals[row + columns[2 * c] + kx * s[13]]
            sums[r * s[10] + c] = total


@jit.merged
def _spans(
    tile: Any, c: Record, group: int, table: int, count: int, y: int, shape: Any, ending: Any
) -> None:
    """One group of outputs of every span in a table, see ``spans.Spans``."""
    step = 4 * c[14]
    y += 4 * group * shape[3]
    for k in range(count):
        span = longs(table + 8 * SPAN_FIELDS * k)
        x, to = c[0] + span[0] * c[1], y + span[2] * step
        sums = c[13] + 4 * span[2]
        for _ in range(span[3]):
            _tile(tile, c, group, span, x, to, sums, shape, ending)
            x += span[4] * c[1]
            to += span[5] * step
            sums += 4 * span[5]


@jit.merged
def _tile(
    tile: Any,
    c: Record,
    group: int,
    span: Record,
    x: int,
    y: int,
    sums: int,
    shape: Any,
    ending: Any,
) -> None:
    """Results of one tile: n - 2 differing = -2 (differing - n div 2) + n mod 2, so that counters
    begin at -(n div 2) and stay small.
    """
    planes, passes, weight_planes, lanes = shape
    low, high, tanh = ending
    n = span[8] * span[9] * c[5]
    outputs, partial = c[14], c[16]
    factors = c[10] + 4 * group * passes * planes * weight_planes * lanes
    start = c[11] + 4 * (span[10] * c[15] + group) * lanes
    for turn in range(passes):
        filled = jit.fill(tile, -(n >> 1))
        counted = _counted(filled, c, group, span, x + 4 * planes * turn, shape)
        if turn == 0:
            part = jit.weigh(counted, factors, start, 0)
        else:
            more = factors + 4 * planes * weight_planes * lanes * turn
            part = jit.weigh(counted, more, partial, 4 * lanes)
        if turn == 0 and c[12]:
            part = jit.add_products(part, sums, 4 * span[7], c[12] + 4 * group * lanes)
        if turn < passes - 1:
            jit.write(part, -np.inf, np.inf, partial, 4 * lanes, lanes)
        else:
            part = jit.tanh(part) if tanh else part
            step = 4 * span[7] * outputs
            jit.write(part, low, high, y, step, outputs - group * lanes)


@jit.merged
def _counted(tile: Any, c: Record, group: int, span: Record, x: int, shape: Any) -> Any:
    """Add up a tile's differing bits over the taps inside. Taps of a row that are neighbours in
    memory are one loop.
    """
    planes, passes, weight_planes, lanes = shape
    word, weights_word = 4 * planes * passes, 4 * weight_planes * lanes
    tap = c[4] * weights_word
    weights = c[7] + (group * c[9] + span[1]) * tap
    columns, length = (1, span[9] * c[4]) if c[6] else (span[9], c[4])
    for ky in range(span[8]):
        for kx in range(columns):
            at = x + ky * c[2] + kx * c[3]
            against = weights + (ky * c[8] + kx) * tap
            for k in range(length):
                tile = jit.count(tile, at + k * word, span[6] * c[1], against + k * weights_word)
    return tile
