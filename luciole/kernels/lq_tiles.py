"""The compiled loops of LQ_CONV_2D: inputs to bit planes, windows of bit planes to results.

Addresses are plain integers and steps are in bytes. The records ``p`` (packing), ``s`` (sums) and
``c`` (counting) are written, and their fields named, by the methods of ``lq_conv_2d._Layer``; a
span's fields are those of ``spans.Spans``. Plane i of an input word stands ``4 i`` bytes behind
plane 0.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from luciole.kernels import jit
from luciole.kernels.jit import LANES, Pointer, Record, floats, longs, popcount, words
from luciole.kernels.spans import SPAN_FIELDS

MAX_SEARCHED = 4
"""Bits up to which inputs are quantized by an unrolled binary search."""


@cache
def kernel(
    pixels: int, planes: int, weight_planes: int, vectors: int, bits: int, passes: int
) -> jit.Kernel:
    """The kernel for tiles of this shape, ``passes`` of them for inputs of ``bits`` planes."""
    searched = bits if bits <= MAX_SEARCHED else 1

    @jit.kernel
    def lq_conv_2d(r: Record) -> None:
        tile = jit.counters(pixels, planes, weight_planes, vectors)
        levels = jit.counters(1, searched, 1, 1)
        single = jit.counters(1, planes, weight_planes, vectors)
        for image in range(r[2]):
            x, y = r[0] + image * r[3], r[1] + image * r[4]
            _pack(levels, longs(r[6]), x, bits, planes * passes)
            if r[7]:
                _sum_windows(longs(r[7]), bits, planes * passes)
            counting = longs(r[8])
            for group in range(counting[16]):
                to, step = _place(counting, group, y, vectors * LANES)
                shape = (planes, passes, weight_planes, vectors * LANES)
                _spans(tile, counting, group, r[9], r[10], to, step, shape)
                _spans(single, counting, group, r[11], r[12], to, step, shape)
                if to == counting[18]:
                    _copy(counting, group, y, vectors * LANES)
            if r[13]:
                _tanh(floats(y), r[5])

    return lq_conv_2d


@jit.merged
def _pack(levels: Any, p: Record, x: int, bits: int, planes: int) -> None:
    """Quantize the floats at ``x``, row by row, to words of bit planes."""
    rows, length = p[0], p[1]
    full, rest = length >> 5, length & 31
    to, spare = p[5], floats(p[6])
    for row in range(rows):
        begin = x + 4 * row * length
        for w in range(full):
            _encode(levels, p, begin + 128 * w, to, bits, 0xFFFFFFFF)
            to += 4 * planes
        if rest:
            for k in range(rest):
                spare[k] = floats(begin + 128 * full)[k]
            _encode(levels, p, p[6], to, bits, (1 << rest) - 1)
            to += 4 * planes


@jit.merged
def _encode(levels: Any, p: Record, x: int, to: int, bits: int, mask: int) -> None:
    """One word of each plane: by binary search where codes rise with levels, else by the bits that
    change at each threshold.
    """
    between, toggles = floats(p[2]), words(p[3])
    given = jit.word_floats(x)
    if p[7]:
        jit.search(levels, given, p[2], mask, to)
        return
    codes = jit.word_codes(p[4])
    for level in range((1 << bits) - 1):
        codes = jit.toggled(codes, given, between[level], toggles[level])
    for i in range(bits):
        words(to)[i] = jit.plane(codes, i) & np.uint32(mask)


@jit.inline
def _sum_windows(s: Record, bits: int, planes: int) -> None:
    """For each window sum_i ax_i (2 popcount(x_i) - n), x_i and n over the taps inside."""
    ax, totals, sums = floats(s[1]), floats(s[5]), floats(s[6])
    for pixel in range(s[2]):
        total = 0.0
        for i in range(bits):
            ones = 0
            for w in range(s[3]):
                ones += popcount(words(s[0])[(pixel * s[3] + w) * planes + i])
            total += ax[i] * (2 * ones - s[4])
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
def _place(c: Record, group: int, y: int, lanes: int) -> tuple[int, int]:
    """Where a group's results go, and how far its pixels are apart: a group that is not full goes
    to a place of its own first.
    """
    if (group + 1) * lanes <= c[15]:
        return y + 4 * group * lanes, 4 * c[15]
    return c[18], 4 * lanes


@jit.inline
def _copy(c: Record, group: int, y: int, lanes: int) -> None:
    """Move the results of a group that is not full to where they belong."""
    outputs, first = c[15], group * lanes
    for pixel in range(c[17]):
        source, to = floats(c[18] + 4 * pixel * lanes), floats(y + 4 * (pixel * outputs + first))
        for o in range(outputs - first):
            to[o] = source[o]


@jit.inline
def _tanh(y: Pointer, count: int) -> None:
    for k in range(count):
        y[k] = np.float32(math.tanh(y[k]))


@jit.merged
def _spans(
    tile: Any, c: Record, group: int, table: int, count: int, y: int, step: int, shape: Any
) -> None:
    """One group of outputs of every span in a table, see ``spans.Spans``."""
    for k in range(count):
        span = longs(table + 8 * SPAN_FIELDS * k)
        x, to = c[0] + span[0] * c[1], y + span[2] * step
        sums = c[14] + 4 * span[2]
        for _ in range(span[3]):
            _tile(tile, c, group, span, x, to, step, sums, shape)
            x += span[4] * c[1]
            to += span[5] * step
            sums += 4 * span[5]


@jit.merged
def _tile(
    tile: Any, c: Record, group: int, span: Record, x: int, y: int, step: int, sums: int, shape: Any
) -> None:
    """Results of one tile: n - 2 differing = -2 (differing - n div 2) + n mod 2, so that counters
    begin at -(n div 2) and stay small.
    """
    planes, passes, weight_planes, lanes = shape
    n = span[8] * span[9] * c[5]
    limits = floats(c[11])
    factors = c[10] + 4 * group * passes * planes * weight_planes * lanes
    start = c[12] + 4 * (span[10] * c[16] + group) * lanes
    for turn in range(passes):
        first, last = turn == 0, turn == passes - 1
        filled = jit.fill(tile, -(n >> 1))
        counted = _counted(filled, c, group, span, x + 4 * planes * turn, shape)
        begin, move = (start, 0) if first else (y, span[7] * step)
        part = jit.weigh(counted, factors + 4 * planes * weight_planes * lanes * turn, begin, move)
        if first and c[13]:
            part = jit.add_products(part, sums, 4 * span[7], c[13] + 4 * group * lanes)
        low = limits[0] if last else np.float32(-np.inf)
        high = limits[1] if last else np.float32(np.inf)
        jit.store_between(part, low, high, y, span[7] * step)


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
