"""A row of inputs sorted by level: lists of their numbers, and the order in which to add them up.

A segment is what one set of 8-bit counters holds: up to 120 inputs whose weights are subtracted and
up to 120 whose weights are added. There are two ways to cut lists into segments, and the cheaper
one for the row at hand is taken: levels L and -L share counters (one list is subtracted, the other
added); or the most frequent level m is left out, because its weights' sum is all weights' sum less
the others' (every other level L then counts as L - m).
"""

from __future__ import annotations

from functools import cache

import numpy as np

from luciole.kernels import jit
from luciole.kernels.jit import floats, longs
from luciole.kernels.jit.record import Record, reader
from luciole.kernels.jit.vector.bitsliced import MOST_ROWS

UNIT = 8
"""Rows that are added at once; lists are filled up with the number of a row of zeros."""

LONGEST = MOST_ROWS // UNIT
"""Units of one list in a segment."""

UNIT_COST, SEGMENT_COST = 12, 90
"""About how many cycles a unit and a segment take (Zen 5; Zen 4: 17 and 100)."""

SLACK = 64
"""Places behind a list's end that are written to."""


class SortingRecord(Record):
    """A row of inputs, tables of levels, and where lists and segments go."""

    x: int
    """The row, which may change before each call."""
    inputs: int
    thresholds: int
    levels: int
    """The levels without their offset."""
    lists: int
    """One list for each level."""
    stride: int
    """Bytes from list to list."""
    counts: int
    """How long each list is."""
    segments: int
    """A table of ``Segment``."""
    factors: int
    """Factor of the sum of each segment: float32."""
    summary: int
    """Where the ``Summary`` goes."""


class Segment(Record):
    """Two lists of row numbers, either of which may have no units."""

    subtracted: int
    subtracted_units: int
    added: int
    added_units: int


class Summary(Record):
    """Numbers of a row besides its segments."""

    segments: int
    start: float
    """Start of a result."""
    of_all: float
    """The factor of all weights' sum."""
    total: float
    """The sum of the row's levels."""


TOTAL = Summary.offset("total")
"""The bytes in front of a summary's sum of levels."""

segment_at, summary_at = reader(Segment), reader(Summary)


@cache
def kernel(levels: int) -> jit.Kernel:
    """Make the kernel for this number of levels."""
    thresholds = levels - 1

    @jit.kernel
    def lq_sorting(r: SortingRecord) -> None:
        """Sort a row, and plan its segments."""
        between = jit.float_splats(r.thresholds, thresholds)
        counts, n = longs(r.counts), r.inputs
        for level in range(levels):
            counts[level] = 0
        for w in range(n >> 5):
            x = jit.word_floats(r.x + 128 * w)
            jit.sort_word(x, between, 32 * w, 0xFFFFFFFF, r.lists, r.stride, r.counts)
        rest = n & 31
        if rest:
            x = jit.first_floats(r.x + 4 * (n - rest), rest)
            mask = (1 << rest) - 1
            jit.sort_word(x, between, n - rest, mask, r.lists, r.stride, r.counts)
        for level in range(levels):
            jit.fill_up(r.lists + level * r.stride + 2 * counts[level], n)
        _plan(r, levels)

    return lq_sorting


@jit.separate
def _units(count: int) -> int:
    return (count + UNIT - 1) // UNIT


@jit.separate
def _segments(units: int) -> int:
    return (units + LONGEST - 1) // LONGEST


@jit.separate
def _plan(r: SortingRecord, levels: int) -> None:
    """Choose how to cut the lists into segments, and write them."""
    counts, values, summary = longs(r.counts), floats(r.levels), summary_at(r.summary, 0)
    most, pairs, alone, total = 0, 0, 0, 0.0
    half = levels >> 1
    for level in range(levels):
        total += counts[level] * np.float64(values[level])
        alone += _segments(_units(counts[level]))
        if counts[level] > counts[most]:
            most = level
    for level in range(half):
        longer = max(counts[half + level], counts[half - 1 - level])
        pairs += _segments(_units(longer))
    left_out = _units(counts[most])
    alone -= _segments(left_out)
    summary.total = total
    if (pairs - alone) * SEGMENT_COST + left_out * UNIT_COST > 0:
        _leave_out(r, levels, most, total)
    else:
        _pair(r, half, total)


@jit.separate
def _pair(r: SortingRecord, half: int, total: float) -> None:
    """Plan segments of levels L and -L: sum = sum_L 2 L (added - subtracted) - all levels' sum, and
    a counter holds added - subtracted - 1.
    """
    counts, values, summary = longs(r.counts), floats(r.levels), summary_at(r.summary, 0)
    start, made = -total, 0
    for level in range(half):
        low, high = half - 1 - level, half + level
        minus, plus = _units(counts[low]), _units(counts[high])
        factor = 2 * values[high]
        place = 0
        while place < max(minus, plus):
            first = _part(r, low, place, minus), _part(r, high, place, plus)
            _write(r, made, first, place, (minus, plus), factor)
            start += factor
            place += LONGEST
            made += 1
    summary.start, summary.of_all, summary.segments = start, 0, made


@jit.separate
def _leave_out(r: SortingRecord, levels: int, most: int, total: float) -> None:
    """Plan segments of every level but the most frequent, m: sum = 2 m all + sum_L 2 (L - m) added
    - all levels' sum, ``all`` being the number of all bits that are set.
    """
    counts, values, summary = longs(r.counts), floats(r.levels), summary_at(r.summary, 0)
    start, made = -total, 0
    for level in range(levels):
        if level != most:
            plus = _units(counts[level])
            factor = 2 * (values[level] - values[most])
            place = 0
            while place < plus:
                first = r.lists, _part(r, level, place, plus)
                _write(r, made, first, place, (0, plus), factor)
                start += factor
                place += LONGEST
                made += 1
    summary.start, summary.of_all, summary.segments = start, 2 * values[most], made


@jit.separate
def _part(r: SortingRecord, level: int, place: int, units: int) -> int:
    """Return the address of a list from one of its units on, of the list itself behind its end."""
    start: int = r.lists + level * r.stride
    return start + 2 * UNIT * (place if place < units else 0)


@jit.separate
def _write(
    r: SortingRecord,
    number: int,
    first: tuple[int, int],
    place: int,
    units: tuple[int, int],
    factor: float,
) -> None:
    segment = segment_at(r.segments, number)
    segment.subtracted, segment.added = first
    segment.subtracted_units = max(0, min(LONGEST, units[0] - place))
    segment.added_units = max(0, min(LONGEST, units[1] - place))
    floats(r.factors)[number] = factor


def most_segments(inputs: int, levels: int) -> int:
    """Count the segments that a row may need: a full one for every MOST_ROWS inputs, and one not
    full for each level.
    """
    return inputs // MOST_ROWS + levels
